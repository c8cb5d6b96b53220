/* What Numba's object code asks of its runtime: memory with counted references, BLAS and LAPACK of
   SciPy. The layouts and names are those of the Numba that build.py pins. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
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
    (void)size;
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

typedef void (*Routine)(); /* of Fortran: all arguments are addresses */
enum { GEMM, GEMV, SYRK, GESV, POTRF, ROUTINES };
static Routine routines[ROUTINES][2]; /* in single and double precision */
static float (*sdot)(int *, void *, int *, void *, int *);
static double (*ddot)(int *, void *, int *, void *, int *);
#define PRECISION(kind) ((kind) == 'd')

static void *capsule(const char *module, const char *name) {
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

int bind_blas(void) {
    static const char *const names[ROUTINES][2] = {
        {"sgemm", "dgemm"}, {"sgemv", "dgemv"}, {"ssyrk", "dsyrk"}, {"sgesv", "dgesv"}, {"spotrf", "dpotrf"}};
    for (int k = 0; k < ROUTINES; k++)
        for (int double_ = 0; double_ < 2; double_++) {
            const char *module = k < GESV ? "scipy.linalg.cython_blas" : "scipy.linalg.cython_lapack";
            if (!(routines[k][double_] = (Routine)capsule(module, names[k][double_]))) return 0;
        }
    sdot = capsule("scipy.linalg.cython_blas", "sdot");
    ddot = capsule("scipy.linalg.cython_blas", "ddot");
    return sdot && ddot;
}

int numba_xxgemm(char kind, char ta, char tb, int64_t m, int64_t n, int64_t k, void *alpha, void *a,
                 int64_t lda, void *b, int64_t ldb, void *beta, void *c, int64_t ldc) {
    int rows = m, columns = n, inner = k, of_a = lda, of_b = ldb, of_c = ldc;
    routines[GEMM][PRECISION(kind)](&ta, &tb, &rows, &columns, &inner, alpha, a, &of_a, b, &of_b,
                                    beta, c, &of_c);
    return 0;
}

int numba_xxgemv(char kind, char trans, int64_t m, int64_t n, void *alpha, void *a, int64_t lda,
                 void *x, void *beta, void *y) {
    int rows = m, columns = n, of_a = lda, one = 1;
    routines[GEMV][PRECISION(kind)](&trans, &rows, &columns, alpha, a, &of_a, x, &one, beta, y, &one);
    return 0;
}

int numba_xxdot(char kind, char conjugate, int64_t n, void *x, void *y, void *result) {
    int size = n, one = 1;
    (void)conjugate;
    if (PRECISION(kind)) *(double *)result = ddot(&size, x, &one, y, &one);
    else *(float *)result = sdot(&size, x, &one, y, &one);
    return 0;
}

int numba_xgesv(char kind, int64_t n, int64_t right, void *a, int64_t lda, int *pivots, void *b,
                int64_t ldb) {
    int rows = n, columns = right, of_a = lda, of_b = ldb, info;
    routines[GESV][PRECISION(kind)](&rows, &columns, a, &of_a, pivots, b, &of_b, &info);
    return info;
}

int numba_xxpotrf(char kind, char side, int64_t n, void *a, int64_t lda) {
    int rows = n, of_a = lda, info;
    routines[POTRF][PRECISION(kind)](&side, &rows, a, &of_a, &info);
    return info;
}
