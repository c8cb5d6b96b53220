/* Calls compiled kernels with Python's objects.

   The first argument of a call is the list of a kernel: itself, and its overloads, tuples (number
   of the entry, code of the arguments, code of the result, objects). A call takes the first whose
   code fits its arguments, writes these into words, as many for each as Numba's calling convention
   has, and calls the entry without the interpreter's lock. What fits none goes to the kernel's
   method `missed`. `build.py` writes the codes; the objects are the
   classes and types that they refer to, by number:

     d q Q ?                           a number
     n                                 None
     A object ndim order writeable     an array, and what NumPy's flags must hold
     R object                          a record, of arguments
     ( object count                    a tuple; one that is a result is plain */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <stdint.h>

#define LARGEST_RESULT 2048

typedef int (*Entry)(void *result, void **error, int64_t *words);
typedef struct { /* of Numba: how a kernel tells its exception */
    const char *pickled;
    int32_t size;
} Raised;
extern const Entry kernel_entries[];
extern void *const pass_addresses[];
extern const char kernel_table[];
void release_memory(void *);

static int is_integer(PyObject *x) {
    return (PyLong_Check(x) && !PyBool_Check(x)) || PyArray_IsScalar(x, Integer);
}

/* Writes one argument; returns the code after it, or NULL where the argument does not fit. */
static const unsigned char *
write_argument(const unsigned char *code, PyObject *x, PyObject *objects, int64_t **words) {
    union { double d; int64_t q; } word = {.q = 0};
    switch (*code) {
    case 'd':
        if (!PyFloat_Check(x) && !PyArray_IsScalar(x, Floating) && !is_integer(x)) return NULL;
        word.d = PyFloat_AsDouble(x);
        break;
    case 'q':
    case 'Q':
        if (!is_integer(x)) return NULL;
        word.q = *code == 'q' ? PyLong_AsLongLong(x) : (int64_t)PyLong_AsUnsignedLongLongMask(x);
        break;
    case '?':
        if (!PyBool_Check(x) && !PyArray_IsScalar(x, Bool)) return NULL;
        word.q = PyObject_IsTrue(x);
        break;
    case 'n':
        return x == Py_None ? code + 1 : NULL;
    case 'R': {
        PyVoidScalarObject *record = (PyVoidScalarObject *)x; /* lives as long as the arguments */
        PyArray_Descr *wanted = (PyArray_Descr *)PyTuple_GetItem(objects, code[1]);
        if (!PyArray_IsScalar(x, Void) || !PyArray_EquivTypes(record->descr, wanted)) return NULL;
        *(*words)++ = (int64_t)record->obval;
        return code + 2;
    }
    case 'A': {
        if (!PyArray_Check(x)) return NULL;
        PyArrayObject *a = (PyArrayObject *)x;
        PyArray_Descr *wanted = (PyArray_Descr *)PyTuple_GetItem(objects, code[1]);
        int ndim = code[2], flags = NPY_ARRAY_ALIGNED | code[3] | code[4] << 8;
        if (PyArray_NDIM(a) != ndim || !PyArray_CHKFLAGS(a, flags)) return NULL;
        if (!PyArray_EquivTypes(PyArray_DESCR(a), wanted)) return NULL;
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
        int count = code[2];
        if ((PyObject *)Py_TYPE(x) != PyTuple_GetItem(objects, code[1])) return NULL;
        if (PyTuple_Size(x) != count) return NULL;
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

/* Reads a value from where the last ended: all take words of eight bytes, but for truth values. */
static PyObject *
read_value(const unsigned char **code, char **at, PyObject *objects, PyObject *arguments) {
    const unsigned char *c = *code;
    *code = c + 1;
    if (*c == '?') return PyBool_FromLong(*(*at)++);
    if (*c == '(') {
        PyObject *values = PyTuple_New(c[2]);
        *code = c + 3;
        for (int k = 0; values && k < c[2]; k++) {
            PyObject *value = read_value(code, at, objects, arguments);
            if (!value) Py_CLEAR(values);
            else PyTuple_SetItem(values, k, value);
        }
        return values;
    }
    int64_t *word = (int64_t *)(((uintptr_t)*at + 7) & ~(uintptr_t)7);
    *at = (char *)(word + 1);
    switch (*c) {
    case 'd': return PyFloat_FromDouble(*(double *)word);
    case 'q': return PyLong_FromLongLong(*word);
    case 'Q': return PyLong_FromUnsignedLongLong(*(uint64_t *)word);
    case 'n': return Py_INCREF(Py_None), Py_None;
    case 'A':
        *code = c + 5;
        *at = (char *)(word + 5 + 2 * c[2]);
        return array_of(word, c[2], PyTuple_GetItem(objects, c[1]), arguments);
    }
    PyErr_SetString(PyExc_SystemError, "a kernel with a result of an unknown type");
    return NULL;
}

static PyObject *call(PyObject *module, PyObject *arguments, PyObject *named) {
    PyObject *overloads = PyTuple_GetItem(arguments, 0), *self = PyList_GetItem(overloads, 0);
    Py_ssize_t given = PyTuple_Size(arguments), count = PyList_Size(overloads);
    if (named && PyDict_Size(named)) count = 0; /* `missed` puts them in order */
    for (Py_ssize_t k = 1; k < count; k++) {
        PyObject *overload = PyList_GetItem(overloads, k), *objects = PyTuple_GetItem(overload, 3);
        const unsigned char *code = (unsigned char *)PyBytes_AsString(PyTuple_GetItem(overload, 1));
        int64_t words[MOST_WORDS], *next = words;
        if (*code++ != given - 1) continue;
        for (Py_ssize_t i = 1; i < given && code; i++)
            code = write_argument(code, PyTuple_GetItem(arguments, i), objects, &next);
        if (!code) continue;
        _Alignas(16) char result[LARGEST_RESULT], *at = result;
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
        return read_value(&code, &at, objects, arguments);
    }
    PyObject *missed = PyObject_GetAttrString(self, "missed");
    PyObject *rest = PyTuple_GetSlice(arguments, 1, given);
    PyObject *out = missed && rest ? PyObject_Call(missed, rest, named) : NULL;
    Py_XDECREF(missed);
    Py_XDECREF(rest);
    return out;
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

static PyMethodDef functions[] = {{"call", (PyCFunction)call, METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"address", address, METH_O, NULL},
                                  {"runs_here", runs_here, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, functions,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_kernels(void) {
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (!module || PyModule_AddStringConstant(module, "table", kernel_table)) return NULL;
    return module;
}
