/* Calls compiled kernels with Python's objects.

   An overload is a tuple (number of the entry, code of the arguments, code of the result, objects).
   A call takes the first overload whose code fits its arguments, writes these into words, as many
   for each as Numba's calling convention has, and calls the entry without the interpreter's lock.
   What fits none goes to the method `missed`. `build.py` writes the codes; the objects are the
   classes and types that they refer to, by number:

     arguments  d f q i Q ?      a number           n    None
                A object ndim layout writeable      R object    a record
                ( count object                      a tuple; object 255: a plain one
     results    the same letters, each number and array followed by its two bytes of offset;
                E object         a member of an enumeration */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <string.h>

#define MOST_WORDS 2048 /* build.py refuses kernels with more, or with a larger result */
#define LARGEST_RESULT 2048

typedef int (*Entry)(void *result, void **error, int64_t *words);
typedef struct { /* of Numba: how a kernel tells its exception */
    const char *pickled;
    int32_t size;
} Raised;
extern const Entry kernel_entries[];
extern void *const pass_addresses[];
void release_memory(void *);
int bind_blas(void);

static int is_integer(PyObject *x) {
    return (PyLong_Check(x) && !PyBool_Check(x)) || PyArray_IsScalar(x, Integer);
}

/* Writes one argument; returns the code after it, or NULL where the argument does not fit. */
static const unsigned char *
write_argument(const unsigned char *code, PyObject *x, PyObject *objects, int64_t **words) {
    union { double d; float f; int64_t q; uint64_t u; } word = {.q = 0};
    switch (*code) {
    case 'd':
    case 'f':
        if (!PyFloat_Check(x) && !PyArray_IsScalar(x, Floating) && !is_integer(x)) return NULL;
        word.d = PyFloat_AsDouble(x);
        if (*code == 'f') word.f = (float)word.d;
        break;
    case 'q':
    case 'i':
        if (!is_integer(x)) return NULL;
        word.q = PyLong_AsLongLong(x);
        break;
    case 'Q':
        if (!is_integer(x)) return NULL;
        { PyObject *whole = PyNumber_Index(x);
          if (whole) { word.u = PyLong_AsUnsignedLongLong(whole); Py_DECREF(whole); } }
        break;
    case '?':
        if (!PyBool_Check(x) && !PyArray_IsScalar(x, Bool)) return NULL;
        word.q = PyObject_IsTrue(x);
        break;
    case 'n':
        return x == Py_None ? code + 1 : NULL;
    case 'R': {
        Py_buffer view;
        PyObject *type = PyObject_GetAttrString(x, "dtype");
        int same = type && (type == PyTuple_GetItem(objects, code[1])
                            || PyObject_RichCompareBool(type, PyTuple_GetItem(objects, code[1]), Py_EQ) == 1);
        Py_XDECREF(type);
        PyErr_Clear();
        if (!same || !PyArray_IsScalar(x, Void) || PyObject_GetBuffer(x, &view, PyBUF_SIMPLE)) {
            PyErr_Clear();
            return NULL;
        }
        *(*words)++ = (int64_t)view.buf; /* lives as long as the arguments; NumPy calls it read-only */
        PyBuffer_Release(&view);
        return code + 2;
    }
    case 'A': {
        if (!PyArray_Check(x)) return NULL;
        PyArrayObject *a = (PyArrayObject *)x;
        PyArray_Descr *wanted = (PyArray_Descr *)PyTuple_GetItem(objects, code[1]);
        int ndim = code[2];
        if (PyArray_NDIM(a) != ndim || !PyArray_ISALIGNED(a)) return NULL;
        if (PyArray_DESCR(a) != wanted && !PyArray_EquivTypes(PyArray_DESCR(a), wanted)) return NULL;
        if (code[3] == 'C' && !PyArray_IS_C_CONTIGUOUS(a)) return NULL;
        if (code[3] == 'F' && !PyArray_IS_F_CONTIGUOUS(a)) return NULL;
        if (code[4] && !PyArray_ISWRITEABLE(a)) return NULL;
        int64_t *to = *words; /* no owners: the arguments live longer than the call */
        *to++ = 0;
        *to++ = 0;
        *to++ = PyArray_SIZE(a);
        *to++ = PyArray_ITEMSIZE(a);
        *to++ = (int64_t)PyArray_DATA(a);
        for (int k = 0; k < ndim; k++) *to++ = PyArray_DIM(a, k);
        for (int k = 0; k < ndim; k++) *to++ = PyArray_STRIDE(a, k);
        *words = to;
        return code + 5;
    }
    case '(': {
        int count = code[1];
        if (!PyTuple_Check(x) || PyTuple_Size(x) != count) return NULL;
        PyObject *kind = code[2] == 255 ? (PyObject *)&PyTuple_Type : PyTuple_GetItem(objects, code[2]);
        if ((PyObject *)Py_TYPE(x) != kind) return NULL;
        code += 3;
        for (int k = 0; k < count && code; k++)
            code = write_argument(code, PyTuple_GetItem(x, k), objects, words);
        return code;
    }
    }
    if (PyErr_Occurred()) { /* a number out of range */
        PyErr_Clear();
        return NULL;
    }
    *(*words)++ = word.q;
    return code + 1;
}

static void release_capsule(PyObject *capsule) {
    release_memory(PyCapsule_GetPointer(capsule, NULL));
}

/* An array that a kernel returns owns its memory, or is a view of the arguments. */
static PyObject *array_of(int64_t *at, int ndim, PyObject *type, PyObject *arguments) {
    npy_intp *shape = (npy_intp *)(at + 5);
    Py_INCREF(type);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)type, ndim, shape,
                                           shape + ndim, (void *)at[4], NPY_ARRAY_WRITEABLE, NULL);
    PyObject *owner = at[0] ? PyCapsule_New((void *)at[0], NULL, release_capsule)
                            : (Py_INCREF(arguments), arguments);
    if (!array || !owner || PyArray_SetBaseObject((PyArrayObject *)array, owner)) return NULL;
    return array;
}

static PyObject *
read_result(const unsigned char **code, char *result, PyObject *objects, PyObject *arguments) {
    const unsigned char *c = *code;
    if (*c == 'n') {
        *code = c + 1;
        Py_INCREF(Py_None);
        return Py_None;
    }
    if (*c == '(') {
        PyObject *values = PyTuple_New(c[1]), *kind = c[2] == 255 ? NULL : PyTuple_GetItem(objects, c[2]);
        *code = c + 3;
        for (int k = 0; values && k < c[1]; k++) {
            PyObject *value = read_result(code, result, objects, arguments);
            if (!value) Py_CLEAR(values);
            else PyTuple_SetItem(values, k, value);
        }
        if (!values || !kind) return values;
        PyObject *named = PyObject_CallObject(kind, values);
        Py_DECREF(values);
        return named;
    }
    int extra = *c == 'A' ? 2 : *c == 'E' ? 1 : 0;
    char *at = result + (c[1 + extra] | c[2 + extra] << 8);
    *code = c + 3 + extra;
    switch (*c) {
    case 'd': return PyFloat_FromDouble(*(double *)at);
    case 'f': return PyFloat_FromDouble(*(float *)at);
    case 'q': return PyLong_FromLongLong(*(int64_t *)at);
    case 'i': return PyLong_FromLong(*(int32_t *)at);
    case 'Q': return PyLong_FromUnsignedLongLong(*(uint64_t *)at);
    case '?': return PyBool_FromLong(*(char *)at);
    case 'E': return PyObject_CallFunction(PyTuple_GetItem(objects, c[1]), "L", *(long long *)at);
    case 'A': return array_of((int64_t *)at, c[2], PyTuple_GetItem(objects, c[1]), arguments);
    }
    PyErr_SetString(PyExc_SystemError, "a kernel with a result of an unknown type");
    return NULL;
}

typedef struct {
    PyObject_HEAD
    PyObject *overloads; /* a list, which may grow */
} Kernel;

static PyObject *kernel_call(PyObject *self, PyObject *arguments, PyObject *named) {
    PyObject *overloads = ((Kernel *)self)->overloads;
    Py_ssize_t given = PyTuple_Size(arguments), count = PyList_Size(overloads);
    if (named && PyDict_Size(named)) count = 0; /* `missed` puts them in order */
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *overload = PyList_GetItem(overloads, k), *objects = PyTuple_GetItem(overload, 3);
        const unsigned char *code = (unsigned char *)PyBytes_AsString(PyTuple_GetItem(overload, 1));
        int64_t words[MOST_WORDS], *next = words;
        if (*code++ != given) continue;
        for (Py_ssize_t i = 0; i < given && code; i++)
            code = write_argument(code, PyTuple_GetItem(arguments, i), objects, &next);
        if (!code) continue;
        _Alignas(16) char result[LARGEST_RESULT];
        Entry entry = kernel_entries[PyLong_AsLong(PyTuple_GetItem(overload, 0))];
        void *error = NULL;
        int status;
        Py_BEGIN_ALLOW_THREADS
        status = entry(result, &error, words);
        Py_END_ALLOW_THREADS
        if (status > 0) {
            const Raised *raised = error;
            return PyObject_CallMethod(self, "raised", "y#", raised->pickled, (Py_ssize_t)raised->size);
        }
        code = (unsigned char *)PyBytes_AsString(PyTuple_GetItem(overload, 2));
        return read_result(&code, result, objects, arguments);
    }
    PyObject *missed = PyObject_GetAttrString(self, "missed");
    PyObject *out = missed ? PyObject_Call(missed, arguments, named) : NULL;
    Py_XDECREF(missed);
    return out;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *overloads;
    if (!PyArg_ParseTuple(arguments, "O!", &PyList_Type, &overloads)) return NULL;
    Kernel *kernel = (Kernel *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (kernel) {
        Py_INCREF(overloads); /* kept for good, as kernels are */
        kernel->overloads = overloads;
    }
    return (PyObject *)kernel;
}

static PyObject *address(PyObject *module, PyObject *number) {
    return PyLong_FromVoidPtr(pass_addresses[PyLong_AsLong(number)]);
}

/* Whether this processor runs the code of the library. */
static PyObject *runs_here(PyObject *module, PyObject *none) {
#ifdef __x86_64__
    __builtin_cpu_init();
    return PyBool_FromLong(__builtin_cpu_supports(KERNEL_LEVEL) != 0);
#else
    return PyBool_FromLong(1);
#endif
}

static PyMethodDef functions[] = {{"address", address, METH_O, NULL},
                                  {"runs_here", runs_here, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, functions,
                                        NULL, NULL, NULL, NULL};
static PyType_Slot slots[] = {{Py_tp_new, kernel_new}, {Py_tp_call, kernel_call}, {0, NULL}};
static PyType_Spec kernel_type = {"proxmargin.compiled.kernels.Kernel", sizeof(Kernel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

PyMODINIT_FUNC PyInit_kernels(void) {
    import_array();
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&kernel_type);
    if (!module || !type || !bind_blas() || PyModule_AddObjectRef(module, "Kernel", type)) return NULL;
    return module;
}
