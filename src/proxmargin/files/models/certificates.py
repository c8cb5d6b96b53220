"""Certificates as plain JSON and back."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, get_type_hints

from proxmargin.certificates.certificate import Certificate, CertificateList
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.settings import from_plain, to_plain

AnyCertificate: TypeAlias = Certificate | CertificateList


def certificate_to_plain(certificate: AnyCertificate) -> Any:
    """One object for one problem, a list for one problem per class."""
    if isinstance(certificate, CertificateList):
        return [_one_to_plain(one) for one in certificate]
    return _one_to_plain(certificate)


def certificate_from_plain(plain: Any) -> AnyCertificate:
    """The certificate that was stored.

    Raises
    ------
    ModelFileError
        A field is missing, unknown or of the wrong type.
    """
    if isinstance(plain, list) and plain:
        return CertificateList([_one_from_plain(one) for one in plain])
    return _one_from_plain(plain)


@cache
def _fields() -> dict[str, type]:
    return get_type_hints(Certificate)


def _one_to_plain(certificate: Certificate) -> dict[str, Any]:
    return {
        name: to_plain(getattr(certificate, name), f"certificate_.{name}") for name in _fields()
    }


def _one_from_plain(plain: Any) -> Certificate:
    if not isinstance(plain, dict) or set(plain) != set(_fields()):
        raise ModelFileError("the certificate does not have the fields of a certificate")
    return Certificate(**{name: _field(plain[name], name, t) for name, t in _fields().items()})


def _field(plain: Any, name: str, kind: type) -> Any:
    value = from_plain(plain, name)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ModelFileError(f"the certificate's {name} should be a {kind.__name__}")
    return value
