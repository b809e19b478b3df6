// See replies.hpp.
#include "replies.hpp"

#include "encode.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "reference.hpp"
#include "values.hpp"

namespace wirecall::python {
namespace {

struct Names {
  PyObject* done = PyUnicode_InternFromString("done");
  PyObject* set_result = PyUnicode_InternFromString("set_result");
  PyObject* set_exception = PyUnicode_InternFromString("set_exception");
};

const Names& names() {
  static const Names all;
  return all;
}

bool call_method(PyObject* name, PyObject* self, PyObject* argument) {
  PyObject* const arguments[] = {self, argument};
  const Reference done =
      Reference::steal(PyObject_VectorcallMethod(name, arguments, argument == nullptr ? 1 : 2, nullptr));
  const bool truth = done.get() == Py_True;
  if (!done) PyErr_WriteUnraisable(self);
  return truth;
}

}  // namespace

Replies::~Replies() {
  if (entries_.empty() || Py_IsInitialized() == 0) return;
  const Gil gil;  // whoever drops the queue need not have it
  for (const Entry& entry : entries_) Py_DECREF(entry.future);
}

void Replies::add(PyObject* future, detail::Answer& answer) noexcept {
  push([&] {
    Entry entry{.future = future, .begin = texts_.size(), .size = 0, .failed = {}};
    if (answer.ok()) {
      entry.size = answer.result().size();
      entry.codec = &answer.reader().codec();
      texts_.append(answer.result());
      texts_.push_back('\0');
    } else {
      entry.failed = std::make_unique<detail::Answer>(std::move(answer));
    }
    return entry;
  });
}

void Replies::add_wake(PyObject* future) noexcept {
  push([&] { return Entry{.future = future, .begin = 0, .size = 0, .failed = {}, .is_wake = true}; });
}

template <class Make>
void Replies::push(const Make& make) noexcept {
  bool first = false;
  {
    const std::scoped_lock lock{mutex_};
    first = entries_.empty();
    try {
      entries_.push_back(make());
    } catch (const std::bad_alloc&) {
      return;  // the future is never completed: there is no memory to say so
    }
  }
  if (first) event_.set();
}

Reader& Replies::reader_of(const Codec& codec) {
  for (const std::unique_ptr<Reader>& reader : readers_) {
    if (&reader->codec() == &codec) return *reader;
  }
  return *readers_.emplace_back(codec.reader());
}

void Replies::complete(const Entry& entry, std::string_view text) {
  const Reference future = Reference::steal(entry.future);
  if (call_method(names().done, future.get(), nullptr)) return;
  if (entry.is_wake) return static_cast<void>(call_method(names().set_result, future.get(), Py_None));
  if (entry.failed == nullptr) {
    Reader& reader = reader_of(*entry.codec);
    reader.reset(text.substr(entry.begin, entry.size));
    const Reference value = Reference::steal(decode_any(reader));
    if (value) return static_cast<void>(call_method(names().set_result, future.get(), value.get()));
    PyErr_Clear();
    const Reference exception = Reference::steal(make_exception(unreadable(reader), detail::ErrorClass::local_error));
    reader.clear_failure();
    return static_cast<void>(call_method(names().set_exception, future.get(), exception.get()));
  }
  const Reference exception = Reference::steal(make_exception(entry.failed->error(), entry.failed->error_class()));
  if (!exception) return PyErr_WriteUnraisable(future.get());
  call_method(names().set_exception, future.get(), exception.get());
}

void Replies::drain() {
  event_.clear();
  {
    const std::scoped_lock lock{mutex_};
    std::swap(entries_, taken_);
    std::swap(texts_, taken_texts_);
  }
  const std::string_view text = taken_texts_.padded();
  for (const Entry& entry : taken_) complete(entry, text);
  taken_.clear();
  taken_texts_.clear();
}

}  // namespace wirecall::python
