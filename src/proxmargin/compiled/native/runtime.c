/* What Numba's object code asks of its runtime: memory with counted references, and SciPy's BLAS and
   LAPACK, by Numba's own source. Layouts and names are those of the Numba that build.py pins. */
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <complex.h>
#include <numpy/ndarraytypes.h>
#include <stdlib.h>

typedef struct {
    int64_t count;
    void (*destroy)(void *, int64_t, void *);
    void *info, *data;
    int64_t size;
    void *allocator;
} Memory;

void *NRT_Allocate(int64_t size) { return malloc(size); }
void NRT_Free(void *pointer) { free(pointer); }

void *NRT_MemInfo_alloc_aligned(int64_t size, uint32_t align) {
    Memory *memory = malloc(sizeof(Memory) + size + align);
    if (!memory) return NULL;
    uintptr_t data = ((uintptr_t)(memory + 1) + align - 1) & ~(uintptr_t)(align - 1);
    *memory = (Memory){1, NULL, NULL, (void *)data, size, NULL};
    return memory;
}

void *NRT_MemInfo_alloc(int64_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

void NRT_MemInfo_call_dtor(Memory *memory) {
    if (memory->destroy) memory->destroy(memory->data, memory->size, memory->info);
    free(memory);
}

void release_memory(Memory *memory) {
    if (__atomic_sub_fetch(&memory->count, 1, __ATOMIC_ACQ_REL) == 0) NRT_MemInfo_call_dtor(memory);
}

static void free_data(void *data, int64_t size, void *info) {
    if (info) ((void (*)(void *))info)(data); /* what the elements hold */
    free(data);
}

void *NRT_MemInfo_new_varsize_dtor(int64_t size, void *destroy) {
    Memory *memory = malloc(sizeof(Memory));
    if (memory) *memory = (Memory){1, free_data, destroy, malloc(size), size, NULL};
    return memory;
}

void *NRT_MemInfo_varsize_realloc(Memory *memory, int64_t size) {
    void *data = realloc(memory->data, size);
    if (data) memory->data = data, memory->size = size;
    return data;
}

/* Where memory for a result is not to be had. */
void numba_gil_ensure(void *state) { abort(); }
void numba_fatal_error(void) { abort(); }

/* Strides of a new shape; every array that kernels reshape is contiguous. */
int numba_attempt_nocopy_reshape(int64_t ndim, const int64_t *shape, const int64_t *strides, int64_t count,
                                 const int64_t *wanted, int64_t *result, int64_t itemsize, int fortran) {
    int64_t step = itemsize, size = 1;
    for (int64_t k = ndim - 1; k >= 0; k--) {
        if (fortran || (shape[k] != 1 && strides[k] != step)) return 0;
        step *= shape[k];
    }
    for (int64_t k = count - 1; k >= 0; k--) {
        result[k] = itemsize * size;
        size *= wanted[k];
    }
    return size * itemsize == step;
}

static void *import_cython_function(const char *module, const char *name) {
    PyObject *imported = PyImport_ImportModule(module), *table = NULL, *found = NULL;
    void *pointer = NULL;
    if (imported) table = PyObject_GetAttrString(imported, "__pyx_capi__");
    if (table) found = PyMapping_GetItemString(table, name);
    if (found) pointer = PyCapsule_GetPointer(found, PyCapsule_GetName(found));
    Py_XDECREF(found);
    Py_XDECREF(table);
    Py_XDECREF(imported);
    return pointer;
}

#define NUMBA_EXPORT_FUNC(type) __attribute__((visibility("hidden"))) type
#define PyMem_RawMalloc malloc /* which the limited API lacks */
#define PyMem_RawFree free
#define _complex_float_t complex float
#define _complex_double_t complex double
#include "_lapack.c"
