// Arrays handed over by Python: cheap to take (no conversion, no copy), checked once. NumPy's are read directly, which its headers
// allow without its library; anything else through the buffer protocol, which NumPy serves slowly.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace pser {

namespace nb = nanobind;

// NumPy's own types. Imported once, and never let go: arrays outlive every module.
struct NumpyTypes {
  PyTypeObject *array, *scalar;

  static const NumpyTypes& get() {
    static const NumpyTypes types;
    return types;
  }
  bool is_array(nb::handle value) const { return PyObject_TypeCheck(value.ptr(), array) != 0; }
  bool is_scalar(nb::handle value) const { return PyObject_TypeCheck(value.ptr(), scalar) != 0; }

 private:
  NumpyTypes() : array(named("ndarray")), scalar(named("generic")) {}
  static PyTypeObject* named(const char* name) {
    nb::object type = nb::module_::import_("numpy").attr(name);
    return reinterpret_cast<PyTypeObject*>(type.release().ptr());
  }
};

class View {
 public:
  View() = default;
  View(nb::handle array, bool writable) {
    // One kind of error for all that the caller may convert and pass again.
    if (!take(array, writable)) throw nb::type_error("expected a contiguous array");
  }
  // The same without an error: false if it is no contiguous array.
  bool take(nb::handle array, bool writable = false) { return take_numpy(array, writable) || take_buffer(array, writable); }
  ~View() {
    Py_XDECREF(held_);
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  View(View&& other) noexcept { swap(other); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * itemsize_; }
  int axes() const { return axes_; }
  int64_t length(int axis) const { return lengths_[axis]; }
  const char* format() const { return format_; }
  uint8_t* raw() const { return raw_; }

  // Is the element type one of these struct-module letters, and of this size?
  bool is(const char* letters, int64_t itemsize) const {
    const char* format = format_;
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (itemsize_ != itemsize || *format == '\0' || format[1] != '\0') return false;
    while (*letters != '\0' && *letters != *format) ++letters;
    return *letters != '\0';
  }

  template <class T>
  T* as() const;

 private:
  bool take_numpy(nb::handle value, bool writable) {
    if (!NumpyTypes::get().is_array(value)) return false;
    const auto* array = reinterpret_cast<const PyArrayObject*>(value.ptr());
    const int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (writable ? NPY_ARRAY_WRITEABLE : 0);
    const PyArray_Descr* type = PyArray_DESCR(array);
    const Letter* letter = letter_of(type->type);
    if ((PyArray_FLAGS(array) & needed) != needed || !PyArray_ISNBO(type->byteorder) || letter == nullptr) return false;
    held_ = value.ptr();
    Py_INCREF(held_);
    raw_ = static_cast<uint8_t*>(PyArray_DATA(const_cast<PyArrayObject*>(array)));
    axes_ = PyArray_NDIM(array);
    lengths_ = PyArray_DIMS(const_cast<PyArrayObject*>(array));
    format_ = letter->text;
    itemsize_ = letter->bytes;
    count_ = 1;
    for (int axis = 0; axis < axes_; ++axis) count_ *= lengths_[axis];
    return true;
  }

  bool take_buffer(nb::handle value, bool writable) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(value.ptr(), &buffer_, flags) != 0) return PyErr_Clear(), false;
    raw_ = static_cast<uint8_t*>(buffer_.buf);
    axes_ = buffer_.ndim;
    lengths_ = buffer_.shape;
    format_ = buffer_.format != nullptr ? buffer_.format : "B";
    itemsize_ = buffer_.itemsize;
    count_ = itemsize_ > 0 ? buffer_.len / itemsize_ : 0;
    return true;
  }

  // NumPy's letters for plain numbers are those of the struct module.
  struct Letter {
    char text[2];
    int bytes;
  };
  static const Letter* letter_of(char type) {
    // The most frequent ones first.
    static constexpr Letter kLetters[] = {{"l", sizeof(long)}, {"d", 8}, {"f", 4}, {"?", 1}, {"b", 1}, {"B", 1}, {"h", 2},
                                          {"H", 2}, {"e", 2}, {"i", 4}, {"I", 4}, {"q", 8}, {"Q", 8}, {"L", sizeof(long)}};
    for (const Letter& letter : kLetters)
      if (letter.text[0] == type) return &letter;
    return nullptr;
  }

  void swap(View& other) {
    std::swap(held_, other.held_);
    std::swap(buffer_, other.buffer_);
    std::swap(raw_, other.raw_);
    std::swap(axes_, other.axes_);
    std::swap(lengths_, other.lengths_);
    std::swap(format_, other.format_);
    std::swap(itemsize_, other.itemsize_);
    std::swap(count_, other.count_);
  }

  PyObject* held_ = nullptr;
  Py_buffer buffer_{};
  uint8_t* raw_ = nullptr;
  int axes_ = 0;
  const Py_ssize_t* lengths_ = nullptr;
  const char* format_ = "";
  int64_t itemsize_ = 0, count_ = 0;

  void expect(const char* letters, int64_t itemsize, const char* name) const {
    if (!is(letters, itemsize)) throw nb::type_error((std::string("expected an array of ") + name).c_str());
  }
};

template <>
inline int64_t* View::as<int64_t>() const {
  expect("lq", 8, "int64");
  return reinterpret_cast<int64_t*>(raw());
}
template <>
inline int32_t* View::as<int32_t>() const {
  expect("il", 4, "int32");
  return reinterpret_cast<int32_t*>(raw());
}
template <>
inline double* View::as<double>() const {
  expect("d", 8, "float64");
  return reinterpret_cast<double*>(raw());
}
template <>
inline float* View::as<float>() const {
  expect("f", 4, "float32");
  return reinterpret_cast<float*>(raw());
}
template <>
inline bool* View::as<bool>() const {
  expect("?", 1, "bool");
  return reinterpret_cast<bool*>(raw());
}

// Arrays taken once and held for as long as this lives.
class PinnedArrays {
 public:
  uint8_t* bytes(nb::handle array) {
    held_.emplace_back(array, true);
    return held_.back().raw();
  }
  template <class T>
  T* as(nb::handle array) {
    held_.emplace_back(array, true);
    return held_.back().as<T>();
  }
  const View& last() const { return held_.back(); }

 private:
  std::vector<View> held_;
};

// An optional argument: null pointer for None.
template <class T>
T* optional(const std::vector<View>& views) {
  return views.empty() ? nullptr : views[0].as<T>();
}

inline std::vector<View> optional_view(nb::handle array) {
  std::vector<View> views;
  if (!array.is_none()) views.emplace_back(array, false);
  return views;
}

}  // namespace pser
