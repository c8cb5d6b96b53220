"""Reading model files: forged, damaged and foreign ones are refused in a sentence."""

from __future__ import annotations

import functools
import hmac
import json
import math
import os
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

from proxmargin import load_model, save_model
from proxmargin.files.errors import ModelFileError
from proxmargin.losses import HuberizedHinge
from proxmargin.penalties import Ridge
from proxmargin.solvers.choice.names import RETIRED
from tests.files.model_files import assert_same, forged_file, learned, npy


@pytest.fixture
def forged(tmp_path):
    """Write a model file whose document or members were changed by hand."""
    return functools.partial(forged_file, tmp_path, learned())


def setting(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(document):
        for key in keys:
            document = document[key]
        document[last] = value

    return change


class TestReading:
    def test_an_unchanged_forgery_loads(self, forged):
        assert_same(learned(), load_model(forged()))

    @pytest.mark.parametrize("name", RETIRED)
    def test_a_model_of_a_solver_of_an_earlier_version_loads(self, name, forged):
        model = load_model(forged(setting("settings", "solver", name)))
        assert model.solver == name
        assert_same(learned(), model.set_params(solver="auto"))

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            ("SampledNewton", "sampled-newton"),
            ("DualNewton", "dual-newton"),
            ("BallInteriorPoint", "ball-interior-point"),
            ("NetInteriorPoint", "net-interior-point"),
            ("HingeNewton", "hinge-newton"),
            ("TallNewton", "tall-newton"),
        ],
    )
    def test_a_solver_object_of_an_earlier_version_is_loaded_as_its_name(self, kind, name, forged):
        gone = {"part": kind, "settings": {"max_stalled": 8}}
        model = load_model(forged(setting("settings", "solver", gone)))
        with pytest.raises(ValueError, match=f"no solver '{name}' any more: it is now solver="):
            clone(model).fit(np.eye(4), [0, 1, 0, 1])
        assert_same(learned(), model.set_params(solver="auto"))

    def test_a_solver_within_one_that_is_gone_says_what_to_type(self, forged):
        inner = {"part": "HingeNewton", "settings": {"max_stalled": 8}}
        settings = {"smallest": 64, "forcing": 0.03, "label": "", "fixed": False, "inner": inner}
        working = {"part": "WorkingSet", "settings": settings}
        with pytest.raises(ModelFileError, match=r"hinge-newton.*now solver='multiplier-newton'"):
            load_model(forged(setting("settings", "solver", working)))

    def test_an_older_format_says_to_save_again(self, forged):
        with pytest.raises(ModelFileError, match=r"version 1, .* reads version 2.*save it"):
            load_model(forged(setting("version", 1)))

    @pytest.mark.parametrize(
        "name", ["tol", "max_iter", "verbose", "solver", "standardize", "stopping", "callbacks"]
    )
    @pytest.mark.parametrize(
        "value",
        [{"array": [float(k) for k in range(300)], "type": "<f8"}, ["a\nb" * 3000]],
        ids=["array", "text"],
    )
    def test_a_setting_that_is_none_is_told_in_one_line(self, forged, name, value):
        path = forged(setting("settings", name, value))
        with pytest.raises(ModelFileError, match=name) as caught:
            load_model(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: not a valid model file: its settings")
        assert message.endswith(".")
        assert len(message) < 700
        assert "\n" not in message

    def test_a_newer_format_says_to_upgrade(self, forged):
        path = forged(lambda _: {"format": "proxmargin model", "version": 7, "proxmargin": "9.1"})
        with pytest.raises(ModelFileError, match=r"version 7, written by proxmargin 9\.1.*upgrade"):
            load_model(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: [d],
            lambda d: {"format": "something else"},
            lambda d: {**d, "more": 1},
            lambda d: {k: v for k, v in d.items() if k != "certificate"},
            setting("version", "1"),
            setting("version", True),
            setting("version", 0),
            setting("proxmargin", 1),
            setting("estimator", "os.system"),
            setting("estimator", "SVC2"),
            setting("estimator", ["MarginClassifier"]),
            setting("settings", [1]),
            setting("settings", "unheard_of", 1),
            setting("settings", "loss", {"part": "Popen", "settings": {"args": "true"}}),
            setting("settings", "loss", {"part": "MarginClassifier", "settings": {}}),
            setting("settings", "loss", {"part": ["Ridge"], "settings": {}}),
            setting("settings", "loss", {"part": "Ridge", "settings": {"l3": 1}}),
            setting("settings", "loss", {"part": "HuberizedHinge", "settings": {"delta": -1}}),
            setting("settings", "loss", {"part": "HuberizedHinge", "settings": {"delta": "x"}}),
            setting("settings", "loss", {"part": "Ridge"}),
            setting("settings", "tol", {"float": "1.0"}),
            setting("settings", "tol", {"float": []}),
            setting("settings", "tol", {"tuple": 3}),
            setting("settings", "tol", {"entries": [[1]]}),
            setting("settings", "tol", {"entries": [[[], 1]]}),
            setting("settings", "tol", {"entries": 1}),
            setting("settings", "tol", {"unknown": 1}),
            setting("settings", "tol", {}),
            setting("settings", "tol", math.nan),
            setting("settings", "tol", -1.0),
            setting("settings", "tol", {"float": "nan"}),
            setting("settings", "tol", 10**400),
            setting("settings", "standardize", 2),
            setting("settings", "standardize", {"array": [True, False], "type": "|b1"}),
            setting("settings", "multi_class", "both"),
            setting("settings", "class_weight", "heavy"),
            setting("settings", "class_weight", {"entries": [["no", -1.0]]}),
            setting("settings", "class_weight", {"entries": [["no", 1.0], ["no", 2.0]]}),
            setting("settings", "solver", 3),
            setting("settings", "callbacks", [{"part": "Linear", "settings": {}}]),
            setting("settings", "loss", {"part": "HuberizedHinge", "settings": {}}),
            setting("settings", "penalty", {"part": "Ridge", "settings": {"l2": "1"}}),
            setting("settings", "penalty", {"part": "Ridge", "settings": {"l2": True}}),
            setting("settings", "solver_options", {"array": ["abc"], "type": "<U2"}),
            setting("settings", "solver_options", {"array": [1.5], "type": "<i8"}),
            setting("settings", "solver_options", {"array": ["1"], "type": "<i8"}),
            setting("settings", "solver_options", {"array": ["a"], "type": "<U1,i4"}),
            lambda d: d["settings"].pop("standardize") and None,
            lambda d: d["settings"].pop("random_state"),
            setting("fitted", "nu_", 10**400),
            setting("fitted", "classes_", {"text": ["a", "a\0"], "dtype": "U"}),
            setting("fitted", []),
            setting("fitted", "extra_", 1),
            setting("fitted", "coef_", 1),
            setting("fitted", "coef_", {"array": "intercept_.npy"}),
            setting("fitted", "coef_", {"array": "../coef_.npy"}),
            setting("fitted", "coef_", None),
            setting("fitted", "n_features_in_", 5),
            setting("fitted", "n_features_in_", True),
            setting("fitted", "n_iter_", -1),
            setting("fitted", "classes_", {"text": ["a"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a", "a"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a", 1], "dtype": "O"}),
            setting("fitted", "classes_", {"text": ["a", "b"], "dtype": "V"}),
            setting("fitted", "classes_", {"text": ["a", "b"], "dtype": []}),
            setting("fitted", "classes_", {"text": ["a", "b", "c"], "dtype": "U"}),
            setting("fitted", "classes_", {"text": ["a" * 100_000, *"b" * 1000], "dtype": "U"}),
            setting("fitted", "feature_names_in_", {"text": ["a"], "dtype": "O"}),
            setting("certificate", 3),
            setting("certificate", []),
            setting("certificate", {"gap": 1.0}),
            lambda d: {**d, "certificate": [d["certificate"]] * 2},
            setting("certificate", "gap", "small"),
            setting("certificate", "converged", 1),
            setting("certificate", "n_iter", 1.5),
        ],
    )
    def test_a_document_that_is_no_model_is_refused(self, forged, change):
        with pytest.raises(ModelFileError, match="forged: not a valid model file"):
            load_model(forged(change))

    @pytest.mark.parametrize(
        "coef",
        [
            npy(np.zeros((1, 5))),
            npy(np.zeros((2, 4))),
            npy(np.zeros(4)),
            npy(np.zeros((1, 4), dtype=int)),
            npy(np.zeros((1, 4), dtype=complex)),
            npy(np.zeros((1, 4), dtype=[("x", float)])),
            npy(np.array([[None] * 4]), allow_pickle=True),
            npy(np.zeros((1, 4)))[:-1],
            npy(np.zeros((1, 4))) + b"x",
            npy(np.zeros((1, 4))).replace(b"(1, 4)", b"(-1,4)"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), ", b"(9**9,),"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), }   ", b"(10**9,4), }"),
            npy(np.zeros((1, 4))).replace(b"(1, 4), }         ", b"(1000000000, 4), }"),
            npy(np.zeros((1, 4))).replace(b"\x01\x00", b"\x09\x00", 1),
            npy(np.zeros((1, 4))).replace(b"(1, 4), }", b"(1, 4), ('"),
            npy(np.zeros((1, 4))).replace(b"{'descr'", b"{ 'desc("),
            npy(np.full((1, 4), np.nan)),
            npy(np.zeros((1, 4), dtype=np.float16)),
            b"",
            None,
        ],
    )
    def test_an_array_that_does_not_fit_is_refused(self, forged, coef):
        with pytest.raises(ModelFileError, match=r"forged: .*coef_"):
            load_model(forged(members={"coef_.npy": coef}))

    def test_extra_members_are_refused(self, forged):
        with pytest.raises(ModelFileError, match="do not belong"):
            load_model(forged(members={"evil.py": b"1 / 0"}))

    def test_compressed_members_are_refused(self, forged):
        with pytest.raises(ModelFileError, match="compressed"):
            load_model(forged(compression=zipfile.ZIP_DEFLATED))

    @pytest.mark.parametrize(
        "text",
        [b"{", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}', b"1" * 5000, b'{"a": NaN}', b"1e999"],
    )
    def test_a_document_that_is_no_json_is_refused(self, forged, text):
        with pytest.raises(ModelFileError, match="forged"):
            load_model(forged(members={"model.json": text}))

    def test_deeply_nested_parameters_are_refused(self, forged):
        deep: list = []
        for _ in range(600):
            deep = [deep]
        with pytest.raises(ModelFileError, match="forged"):
            load_model(forged(setting("settings", "tol", {"tuple": deep, "x": deep})))

    @pytest.mark.parametrize("content", [b"", b"P", b"PK\x03\x04", b"a,b,y\n1,2,3\n", bytes(5000)])
    def test_foreign_files_are_refused(self, tmp_path, content):
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(ModelFileError, match="foreign"):
            load_model(tmp_path / "foreign")

    def test_another_zip_archive_is_refused(self, tmp_path):
        np.savez(tmp_path / "data.npz", X=np.zeros(3))
        with pytest.raises(ModelFileError, match=r"no 'model\.json'"):
            load_model(tmp_path / "data.npz")

    def test_missing_files_and_folders_are_sentences(self, tmp_path):
        with pytest.raises(ModelFileError, match="No such file"):
            load_model(tmp_path / "absent")
        with pytest.raises(ModelFileError, match="cannot be read"):
            load_model(tmp_path)


def test_damaged_files_load_the_same_model_or_are_refused(tmp_path):
    model = learned(penalty=Ridge(0.5), solver="fapg", solver_options={"growth": 1.5})
    save_model(model, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    rng = np.random.default_rng(11)
    refused = 0
    for trial in range(800):
        content = bytearray(whole)
        for at in rng.integers(0, len(whole), size=1 + trial % 3):
            content[at] ^= rng.integers(1, 256)
        if trial % 5 == 0:
            content = content[: rng.integers(0, len(content))]
        (tmp_path / "damaged").write_bytes(content)
        try:
            again = load_model(tmp_path / "damaged")
        except ModelFileError:
            refused += 1
        else:
            assert_same(model, again)
    assert refused > 500


class TestChecksums:
    def test_a_member_that_another_program_changed_is_named(self, tmp_path):
        save_model(learned(), tmp_path / "whole")
        with zipfile.ZipFile(tmp_path / "whole") as source:
            content = {name: source.read(name) for name in source.namelist()}
        content["coef_.npy"] = npy(np.ones((1, 4)))
        with zipfile.ZipFile(tmp_path / "changed", "w") as target:
            for name, data in content.items():
                target.writestr(name, data)
        with pytest.raises(ModelFileError, match=r"changed: .*'coef_\.npy' is damaged: its SHA"):
            load_model(tmp_path / "changed")

    @pytest.mark.parametrize(
        "members", [{}, {"coef_.npy": 3}, {"model.json": "0"}, [], {"missing.npy": "0"}]
    )
    def test_a_list_of_members_that_cannot_be_is_refused(self, tmp_path, members):
        path = forged_file(tmp_path, learned())
        with zipfile.ZipFile(path) as source:
            content = {name: source.read(name) for name in source.namelist()}
        document = json.loads(content["model.json"]) | {"members": members}
        with zipfile.ZipFile(path, "w") as target:
            for name, data in (content | {"model.json": json.dumps(document)}).items():
                target.writestr(name, data)
        with pytest.raises(ModelFileError, match="forged: not a valid model file"):
            load_model(path)


class TestSignatures:
    KEY = b"secret"

    def sign(self, document):
        return hmac.digest(self.KEY, document, "sha256")

    def verify(self, document, signature):
        return hmac.compare_digest(self.sign(document), signature)

    def test_a_signed_model_loads_with_and_without_its_key(self, tmp_path):
        save_model(learned(), tmp_path / "signed", sign=self.sign)
        assert_same(learned(), load_model(tmp_path / "signed", verify=self.verify))
        assert_same(learned(), load_model(tmp_path / "signed"))

    def test_an_unsigned_model_is_refused_where_a_signature_is_asked_for(self, tmp_path):
        save_model(learned(), tmp_path / "plain")
        with pytest.raises(ModelFileError, match=r"plain: .*it is not signed"):
            load_model(tmp_path / "plain", verify=self.verify)

    def test_a_signature_of_another_model_is_refused(self, tmp_path):
        save_model(learned(), tmp_path / "signed", sign=self.sign)
        forged = forged_file(
            tmp_path,
            learned(),
            setting("settings", "tol", 0.5),
            members={"model.sig": zipfile.ZipFile(tmp_path / "signed").read("model.sig")},
        )
        with pytest.raises(ModelFileError, match="its signature is refused"):
            load_model(forged, verify=self.verify)
        assert load_model(forged).tol == 0.5

    @pytest.mark.parametrize("answer", [None, False, 1, "yes"])
    def test_anything_but_true_refuses(self, tmp_path, answer):
        save_model(learned(), tmp_path / "signed", sign=self.sign)
        with pytest.raises(ModelFileError, match="its signature is refused"):
            load_model(tmp_path / "signed", verify=lambda *_: answer)

    def test_an_error_of_the_verifier_refuses(self, tmp_path):
        save_model(learned(), tmp_path / "signed", sign=self.sign)
        with pytest.raises(ModelFileError, match=r"signature is refused .*KeyError"):
            load_model(tmp_path / "signed", verify=lambda *_: {}["key"])

    def test_a_signature_is_of_bytes(self, tmp_path):
        with pytest.raises(ModelFileError, match="sign must return bytes, got str"):
            save_model(learned(), tmp_path / "signed", sign=lambda _: "me")
        assert list(tmp_path.iterdir()) == []


def test_reading_a_file_opens_no_process_and_imports_nothing_new(tmp_path, monkeypatch):
    save_model(learned(loss=HuberizedHinge()), tmp_path / "model.pmz")
    load_model(tmp_path / "model.pmz")
    monkeypatch.setattr("pickle.loads", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr("pickle.load", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr(os, "system", lambda *_: pytest.fail("ran a command"))
    assert_same(learned(loss=HuberizedHinge()), load_model(tmp_path / "model.pmz"))
