// Arrays handed over by Python through its buffer protocol: cheap to take (no conversion, no copy), checked once.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace pser {

namespace nb = nanobind;

class View {
 public:
  View() = default;
  View(nb::handle array, bool writable) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) == 0) return;
    PyErr_Clear();  // one kind of error for all that the caller may convert and pass again
    throw nb::type_error("expected a contiguous array");
  }
  // The same without an error: false if it is no contiguous array.
  bool take(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) return true;
    PyErr_Clear();
    return false;
  }
  ~View() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  View(View&& other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  int64_t count() const { return buffer_.itemsize > 0 ? buffer_.len / buffer_.itemsize : 0; }
  int64_t bytes() const { return buffer_.len; }
  int axes() const { return buffer_.ndim; }
  int64_t length(int axis) const { return buffer_.shape[axis]; }
  const char* format() const { return buffer_.format != nullptr ? buffer_.format : "B"; }
  uint8_t* raw() const { return static_cast<uint8_t*>(buffer_.buf); }

  // Is the element type one of these struct-module letters, and of this size?
  bool is(const char* letters, int64_t itemsize) const {
    const char* format = this->format();
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    return buffer_.itemsize == itemsize && *format != '\0' && std::strchr(letters, *format) != nullptr && format[1] == '\0';
  }

  template <class T>
  T* as() const;

 private:
  Py_buffer buffer_{};

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
