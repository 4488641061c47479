/* The ways in from Python to the machine code of the kernels.

   `python -m muntin.shipping` appends the tables and the stubs of the kernels to this file, and links it with
   the object code that Numba made. The kernels themselves are written in Python.

   A call reads the types of its arguments as a row of codes, finds the variant of the kernel that was compiled
   for them, and calls it with Numba's calling convention: status f(result *, exception **, arguments...).
   A call with other types goes to Numba, which compiles. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

/* --- memory that kernels allocate ------------------------------------------------------------------------ */

/* Numba's code counts references in the first word, and reads `data`. */
typedef struct {
    _Atomic size_t references;
    void (*destructor)(void *data, size_t size, void *info);
    void *info;
    void *data;
    size_t size;
    void *allocator;
} Memory;

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *NRT_Allocate(size_t size) { return malloc(size ? size : 1); }

HIDDEN void NRT_Free(void *memory) { free(memory); }

HIDDEN Memory *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align) {
    size_t room = sizeof(Memory) + size + align;
    Memory *memory = room < size ? NULL : malloc(room);
    if (memory == NULL) return NULL;
    uintptr_t begin = (uintptr_t)(memory + 1);
    if (align > 1) begin = (begin + align - 1) / align * align;
    atomic_init(&memory->references, 1);
    memory->destructor = NULL;
    memory->info = NULL;
    memory->data = (void *)begin;
    memory->size = size;
    memory->allocator = NULL;
    return memory;
}

HIDDEN Memory *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

HIDDEN void NRT_MemInfo_call_dtor(Memory *memory) {
    if (memory->destructor != NULL) memory->destructor(memory->data, memory->size, memory->info);
    free(memory);
}

/* Memory of a list, which grows: it lies apart, and `info` is what ends its items. */
static void end_list(void *data, size_t size, void *info) {
    void (*end_items)(void *, size_t, void *) = info;
    if (end_items != NULL) end_items(data, size, NULL);
    free(data);
}

HIDDEN Memory *NRT_MemInfo_new_varsize_dtor(size_t size, void *end_items) {
    void *data = malloc(size ? size : 1);
    Memory *memory = data == NULL ? NULL : NRT_MemInfo_alloc_aligned(0, 1);
    if (memory == NULL) {
        free(data);
        return NULL;
    }
    memory->destructor = end_list;
    memory->info = end_items;
    memory->data = data;
    memory->size = size;
    return memory;
}

HIDDEN Memory *NRT_MemInfo_new_varsize(size_t size) { return NRT_MemInfo_new_varsize_dtor(size, NULL); }

HIDDEN void *NRT_MemInfo_varsize_realloc(Memory *memory, size_t size) {
    void *data = realloc(memory->data, size ? size : 1);
    if (data == NULL) return NULL;
    memory->data = data;
    memory->size = size;
    return data;
}

static void release(Memory *memory) {
    if (memory != NULL && atomic_fetch_sub(&memory->references, 1) == 1) NRT_MemInfo_call_dtor(memory);
}

/* The strides of an array that is looked at in another shape; 0 where that needs a copy.
   Dimensions of one element have no say; the others are taken in groups of equal size on both sides, and
   each group of the old ones must lie without holes. */
HIDDEN int numba_attempt_nocopy_reshape(
    npy_intp old_nd, const npy_intp *old_shape, const npy_intp *old_strides, npy_intp nd, const npy_intp *shape,
    npy_intp *strides, npy_intp item, int fortran) {
    npy_intp lengths[NPY_MAXDIMS], steps[NPY_MAXDIMS], n = 0, i = 0, j = 0;
    for (npy_intp k = 0; k < old_nd; k++)
        if (old_shape[k] != 1) lengths[n] = old_shape[k], steps[n++] = old_strides[k];
    for (npy_intp k = 0; k < old_nd; k++) {
        if (old_shape[k] != 0) continue;
        for (npy_intp m = 0; m < nd; m++) strides[m] = item; /* of no element */
        return 1;
    }
    while (i < n && j < nd) {
        npy_intp i_end = i + 1, j_end = j + 1, have = lengths[i], want = shape[j];
        while (have != want) {
            if (want < have) {
                if (j_end == nd) return 0;
                want *= shape[j_end++];
            } else {
                if (i_end == n) return 0;
                have *= lengths[i_end++];
            }
        }
        for (npy_intp k = i; k + 1 < i_end; k++) {
            npy_intp next = fortran ? lengths[k] * steps[k] : lengths[k + 1] * steps[k + 1];
            if ((fortran ? steps[k + 1] : steps[k]) != next) return 0;
        }
        if (fortran) {
            strides[j] = steps[i];
            for (npy_intp k = j + 1; k < j_end; k++) strides[k] = strides[k - 1] * shape[k - 1];
        } else {
            strides[j_end - 1] = steps[i_end - 1];
            for (npy_intp k = j_end - 1; k > j; k--) strides[k - 1] = strides[k] * shape[k];
        }
        i = i_end, j = j_end;
    }
    npy_intp last = item;
    if (j > 0) last = fortran ? strides[j - 1] * shape[j - 1] : strides[j - 1];
    for (; j < nd; j++) strides[j] = last;
    return 1;
}

/* --- types of arguments ---------------------------------------------------------------------------------- */

enum { ARRAY = 1, NUMBER = 2, NOTHING = 3, TUPLE = 4 };
enum { BOOL = 1, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64 };
enum { MOST = 96 };

#define CODE(kind, type) ((uint32_t)(kind) | (uint32_t)(type) << 4)
#define LAYOUT_C (1u << 16)
#define LAYOUT_F (2u << 16)
#define READ_ONLY (1u << 18)

/* One argument, or one item of a tuple, as a kernel takes it. */
typedef union {
    int64_t integer;
    uint64_t natural;
    double real;
    float small_real;
    PyArrayObject *array;
} Slot;

typedef struct {
    uint32_t codes[MOST];
    Slot slots[MOST];
    int n;
} Arguments;

static int type_of(int number) {
    switch (number) {
        case NPY_BOOL: return BOOL;
        case NPY_BYTE: return INT8;
        case NPY_UBYTE: return UINT8;
        case NPY_SHORT: return INT16;
        case NPY_USHORT: return UINT16;
        case NPY_INT: return INT32;
        case NPY_UINT: return UINT32;
        case NPY_LONG: return sizeof(long) == 8 ? INT64 : INT32;
        case NPY_ULONG: return sizeof(long) == 8 ? UINT64 : UINT32;
        case NPY_LONGLONG: return INT64;
        case NPY_ULONGLONG: return UINT64;
        case NPY_FLOAT: return FLOAT32;
        case NPY_DOUBLE: return FLOAT64;
        default: return 0;
    }
}

static int read_array(PyArrayObject *array, uint32_t *code) {
    int flags = PyArray_FLAGS(array), type = type_of(PyArray_TYPE(array)), nd = PyArray_NDIM(array);
    if (type == 0 || nd == 0 || nd > 2 || !(flags & NPY_ARRAY_ALIGNED) || PyArray_ISBYTESWAPPED(array)) return 0;
    *code = CODE(ARRAY, type) | (uint32_t)nd << 12;
    if (flags & NPY_ARRAY_C_CONTIGUOUS) *code |= LAYOUT_C;
    else if (flags & NPY_ARRAY_F_CONTIGUOUS) *code |= LAYOUT_F;
    if (!(flags & NPY_ARRAY_WRITEABLE)) *code |= READ_ONLY;
    return 1;
}

/* Add the code and the value of one argument; 0 if no variant can have its type. Numba gives an integer the
   type int64, or uint64 if it is too large, and NumPy's numbers their own. */
static int read_argument(PyObject *given, Arguments *to) {
    if (to->n == MOST) return 0;
    uint32_t *code = &to->codes[to->n];
    Slot *slot = &to->slots[to->n++];
    PyTypeObject *type = Py_TYPE(given);
    if (type == &PyArray_Type) {
        slot->array = (PyArrayObject *)given;
        return read_array(slot->array, code);
    }
    /* An integer, or one of a class of integers; an enumeration is a type of its own to Numba. */
    if (type == &PyLong_Type || (PyLong_Check(given) && !PyBool_Check(given) && Py_IS_TYPE(type, &PyType_Type))) {
        int overflow;
        slot->integer = PyLong_AsLongLongAndOverflow(given, &overflow);
        *code = CODE(NUMBER, INT64);
        if (overflow == 0) return 1;
        if (overflow < 0) return 0;
        *code = CODE(NUMBER, UINT64);
        slot->natural = PyLong_AsUnsignedLongLong(given);
        if (!PyErr_Occurred()) return 1;
        PyErr_Clear();
        return 0;
    }
    if (given == Py_None) {
        *code = NOTHING;
        return 1;
    }
    if (given == Py_True || given == Py_False) {
        slot->integer = given == Py_True;
        *code = CODE(NUMBER, BOOL);
        return 1;
    }
    if (type == &PyFloat_Type) {
        slot->real = PyFloat_AS_DOUBLE(given);
        *code = CODE(NUMBER, FLOAT64);
        return 1;
    }
    if (type == &PyTuple_Type) {
        Py_ssize_t length = PyTuple_GET_SIZE(given);
        if (length > MOST) return 0;
        *code = CODE(TUPLE, length);
        for (Py_ssize_t i = 0; i < length; i++)
            if (!read_argument(PyTuple_GET_ITEM(given, i), to)) return 0;
        return 1;
    }
#define SCALAR(name, member, kind)                      \
    if (type == &Py##name##ArrType_Type) {              \
        slot->member = PyArrayScalar_VAL(given, name);  \
        *code = CODE(NUMBER, kind);                     \
        return 1;                                       \
    }
    SCALAR(Long, integer, INT64)
    SCALAR(Double, real, FLOAT64)
    SCALAR(Bool, integer, BOOL)
    SCALAR(ULong, natural, UINT64)
    SCALAR(LongLong, integer, INT64)
    SCALAR(ULongLong, natural, UINT64)
    SCALAR(Int, integer, INT32)
    SCALAR(UInt, natural, UINT32)
    SCALAR(Short, integer, INT16)
    SCALAR(UShort, natural, UINT16)
    SCALAR(Byte, integer, INT8)
    SCALAR(UByte, natural, UINT8)
    SCALAR(Float, small_real, FLOAT32)
    return 0;
}

/* --- results --------------------------------------------------------------------------------------------- */

/* An array of a result, followed by its shape and its strides. */
typedef struct {
    Memory *memory;
    void *parent;
    int64_t items, item_size;
    char *data;
    npy_intp shape[];
} Result;

typedef struct {
    PyObject_HEAD
    Memory *memory;
} Owner;

static void owner_dealloc(Owner *self) {
    release(self->memory);
    PyObject_Free(self);
}

static PyTypeObject OwnerType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "muntin.shipping.Owner",
    .tp_doc = "The memory of an array that a kernel allocated.",
    .tp_basicsize = sizeof(Owner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)owner_dealloc,
};

/* The argument that the memory belongs to, if a kernel returns a part of one; borrowed. */
static PyArrayObject *argument_with(const char *data, const Arguments *given) {
    for (int i = 0; i < given->n; i++) {
        if ((given->codes[i] & 15) != ARRAY) continue;
        PyArrayObject *array = given->slots[i].array;
        const char *low = PyArray_BYTES(array), *high = low;
        for (int k = 0; k < PyArray_NDIM(array); k++) {
            npy_intp span = (PyArray_DIM(array, k) - 1) * PyArray_STRIDE(array, k);
            if (PyArray_DIM(array, k) == 0) span = 0;
            if (span < 0) low += span; else high += span;
        }
        if (data >= low && data <= high + PyArray_ITEMSIZE(array)) return array;
    }
    return NULL;
}

static PyObject *array_of(Result *result, int nd, int number, const Arguments *given) {
    npy_intp *strides = result->shape + nd;
    PyArrayObject *source = result->memory == NULL ? argument_with(result->data, given) : NULL;
    if (source != NULL && PyArray_DATA(source) == result->data && PyArray_NDIM(source) == nd &&
        type_of(PyArray_TYPE(source)) == type_of(number) &&
        !memcmp(PyArray_SHAPE(source), result->shape, nd * sizeof(npy_intp)) &&
        !memcmp(PyArray_STRIDES(source), strides, nd * sizeof(npy_intp)))
        return Py_NewRef((PyObject *)source);
    int writable = source == NULL || PyArray_ISWRITEABLE(source) ? NPY_ARRAY_WRITEABLE : 0;
    PyObject *array = PyArray_New(
        &PyArray_Type, nd, result->shape, number, strides, result->data, 0, writable, NULL);
    if (array == NULL) {
        release(result->memory);
        return NULL;
    }
    PyObject *base;
    if (result->memory != NULL) {
        Owner *owner = PyObject_New(Owner, &OwnerType);
        if (owner == NULL) release(result->memory);
        else owner->memory = result->memory;
        base = (PyObject *)owner;
    } else if (source != NULL) {
        base = Py_NewRef((PyObject *)source);
    } else { /* an array without elements that no one owns */
        PyObject *copy = PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER);
        Py_DECREF(array);
        return copy;
    }
    if (base == NULL || PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

/* --- exceptions ------------------------------------------------------------------------------------------ */

/* What a kernel raises: the pickled class and arguments, or the class and a function that makes the
   arguments. */
typedef struct {
    const char *pickled;
    int32_t size;
    void *values;
    PyObject *(*arguments)(void *values);
    int32_t on_heap;
} Raised;

enum { OK = 0, RAISED_IN_PYTHON = -1, RETURNED_NONE = -2 };

static void raise_from(int status, Raised *raised) {
    if (status == RAISED_IN_PYTHON && PyErr_Occurred()) return;
    if (status <= 0 || raised == NULL) {
        PyErr_Format(PyExc_SystemError, "a kernel returned the status %d", status);
        return;
    }
    PyObject *pickle = PyImport_ImportModule("pickle"), *what = NULL, *arguments = NULL;
    if (pickle != NULL)
        what = PyObject_CallMethod(pickle, "loads", "y#", raised->pickled, (Py_ssize_t)raised->size);
    Py_XDECREF(pickle);
    if (what != NULL && !(PyTuple_Check(what) && PyTuple_GET_SIZE(what) >= 2)) {
        PyErr_SetString(PyExc_SystemError, "a kernel raised an exception that cannot be read");
    } else if (what != NULL) {
        if (raised->arguments != NULL) arguments = raised->arguments(raised->values);
        else arguments = Py_NewRef(PyTuple_GET_ITEM(what, 1));
        if (arguments != NULL) PyErr_SetObject(PyTuple_GET_ITEM(what, 0), arguments);
    }
    Py_XDECREF(what);
    Py_XDECREF(arguments);
    if (raised->arguments != NULL && raised->on_heap) free(raised);
}

/* --- kernels --------------------------------------------------------------------------------------------- */

/* `codes` of the arguments after the mask must equal those of the variant. */
typedef struct {
    const char *signature;
    int n;
    const uint32_t *codes;
    const uint32_t *masks;
    int (*call)(void *result, Raised **raised, const Slot *slots);
    PyObject *(*box)(void *result, const Arguments *given);
} Variant;

/* `fixed` is the number of arguments before `*rest`, -1 if there is no rest. */
typedef struct {
    const char *name;
    int fixed;
    int n;
    const Variant *variants;
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const Entry *entry;
    const Variant *last;
    PyObject *function;
    PyObject *make;
    PyObject *dispatcher;
} Kernel;

static const Entry *find_entry(const char *name);
enum { LARGEST_RESULT = 1024 };

static PyObject *dispatcher_of(Kernel *self, void *closure) {
    if (self->dispatcher == NULL) {
        PyObject *made = PyObject_CallNoArgs(self->make);
        if (made == NULL) return NULL;
        if (self->dispatcher == NULL) self->dispatcher = made; /* not by another thread meanwhile */
        else Py_DECREF(made);
    }
    return Py_NewRef(self->dispatcher);
}

static int fits(const Variant *variant, const Arguments *given) {
    if (variant->n != given->n) return 0;
    for (int i = 0; i < given->n; i++)
        if ((given->codes[i] & variant->masks[i]) != variant->codes[i]) return 0;
    return 1;
}

static const Variant *variant_for(Kernel *self, PyObject *const *args, Py_ssize_t n, Arguments *given) {
    const Entry *entry = self->entry;
    Py_ssize_t fixed = entry->fixed < 0 ? n : entry->fixed;
    if (n < fixed) return NULL;
    given->n = 0;
    for (Py_ssize_t i = 0; i < fixed; i++)
        if (!read_argument(args[i], given)) return NULL;
    if (entry->fixed >= 0) {
        if (given->n == MOST) return NULL;
        given->codes[given->n++] = CODE(TUPLE, n - fixed);
        for (Py_ssize_t i = fixed; i < n; i++)
            if (!read_argument(args[i], given)) return NULL;
    }
    if (self->last != NULL && fits(self->last, given)) return self->last;
    for (int i = 0; i < entry->n; i++)
        if (fits(&entry->variants[i], given)) return self->last = &entry->variants[i];
    return NULL;
}

static PyObject *run(const Variant *variant, const Arguments *given) {
    _Alignas(16) char result[LARGEST_RESULT];
    Raised *raised = NULL;
    PyThreadState *state = PyEval_SaveThread();
    int status = variant->call(result, &raised, given->slots);
    PyEval_RestoreThread(state);
    if (status == OK) return variant->box(result, given);
    if (status == RETURNED_NONE) Py_RETURN_NONE;
    raise_from(status, raised);
    return NULL;
}

static PyObject *call_kernel(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
    Kernel *self = (Kernel *)callable;
    if (self->entry != NULL && names == NULL) {
        Arguments given;
        const Variant *variant = variant_for(self, args, PyVectorcall_NARGS(flags), &given);
        if (variant != NULL) return run(variant, &given);
    }
    PyObject *dispatcher = dispatcher_of(self, NULL);
    if (dispatcher == NULL) return NULL;
    PyObject *result = PyObject_Vectorcall(dispatcher, args, flags, names);
    Py_DECREF(dispatcher);
    return result;
}

/* The signature that the library has for these arguments; None where Numba compiles. */
static PyObject *variant(Kernel *self, PyObject *args) {
    Arguments given;
    if (self->entry == NULL) Py_RETURN_NONE;
    const Variant *found = variant_for(
        self, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), &given);
    if (found == NULL) Py_RETURN_NONE;
    return PyUnicode_FromString(found->signature);
}

static PyObject *new_kernel(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    const char *name;
    PyObject *function, *make;
    if (!PyArg_ParseTuple(args, "sOO", &name, &function, &make)) return NULL;
    Kernel *self = (Kernel *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = call_kernel;
    self->entry = find_entry(name);
    self->function = Py_NewRef(function);
    self->make = Py_NewRef(make);
    return (PyObject *)self;
}

static int kernel_traverse(Kernel *self, visitproc visit, void *arg) {
    Py_VISIT(self->function);
    Py_VISIT(self->make);
    Py_VISIT(self->dispatcher);
    return 0;
}

static int kernel_clear(Kernel *self) {
    Py_CLEAR(self->function);
    Py_CLEAR(self->make);
    Py_CLEAR(self->dispatcher);
    return 0;
}

static void kernel_dealloc(Kernel *self) {
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *of_function(Kernel *self, void *name) {
    return PyObject_GetAttrString(self->function, name);
}

static PyGetSetDef kernel_properties[] = {
    {"dispatcher", (getter)dispatcher_of, NULL, "Numba's compiler of this kernel.", NULL},
    {"__name__", (getter)of_function, NULL, NULL, "__name__"},
    {"__qualname__", (getter)of_function, NULL, NULL, "__qualname__"},
    {"__module__", (getter)of_function, NULL, NULL, "__module__"},
    {"__doc__", (getter)of_function, NULL, NULL, "__doc__"},
    {NULL},
};

static PyMemberDef kernel_members[] = {
    {"py_func", T_OBJECT, offsetof(Kernel, function), READONLY, "The Python function."},
    {"__wrapped__", T_OBJECT, offsetof(Kernel, function), READONLY, "The Python function."},
    {NULL},
};

static PyMethodDef kernel_methods[] = {
    {"variant", (PyCFunction)variant, METH_VARARGS,
     "The signature that the library has for these arguments; None where Numba compiles."},
    {NULL},
};

static PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "muntin.shipping.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_kernel,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Kernel, vectorcall),
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_clear = (inquiry)kernel_clear,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_getset = kernel_properties,
    .tp_members = kernel_members,
    .tp_methods = kernel_methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "muntin_kernels", "Compiled kernels.", -1, NULL,
};

PyMODINIT_FUNC PyInit_muntin_kernels(void) {
    import_array();
    if (PyType_Ready(&OwnerType) < 0 || PyType_Ready(&KernelType) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Kernel", (PyObject *)&KernelType) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}

/* --- tables, generated ----------------------------------------------------------------------------------- */

#define DIM(i, k) PyArray_DIM(s[i].array, k)
#define STRIDE(i, k) PyArray_STRIDE(s[i].array, k)
#define DATA(i) PyArray_DATA(s[i].array)
#define VECTOR(i, size) NULL, NULL, DIM(i, 0), size, DATA(i), DIM(i, 0), STRIDE(i, 0)
#define MATRIX(i, size)                                                                                \
    NULL, NULL, DIM(i, 0) * DIM(i, 1), size, DATA(i), DIM(i, 0), DIM(i, 1), STRIDE(i, 0), STRIDE(i, 1)
#define VECTOR_TYPES void *, void *, int64_t, int64_t, void *, int64_t, int64_t
#define MATRIX_TYPES void *, void *, int64_t, int64_t, void *, int64_t, int64_t, int64_t, int64_t

static PyObject *none_of(void *result, const Arguments *given) { Py_RETURN_NONE; }

static PyObject *tuple_of(Py_ssize_t n, PyObject **items) {
    PyObject *tuple = PyTuple_New(n);
    int whole = tuple != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        whole = whole && items[i] != NULL;
        if (tuple != NULL) PyTuple_SET_ITEM(tuple, i, items[i]);
        else Py_XDECREF(items[i]);
    }
    if (!whole) Py_CLEAR(tuple);
    return tuple;
}

