// Replies: a queue of answers, from the thread that drives a client to the asyncio loop whose futures wait for them.
// The driver takes no GIL to put one in, and wakes the loop once for all that are in it. Thread: any to add; drain is
// the asyncio loop's.
#pragma once

#include <Python.h>
#include <mutex>

#include "wake_event.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"
#include "wirecall/request.hpp"

namespace wirecall::python {

class Replies {
 public:
  Replies() = default;
  Replies(Replies&&) = delete;
  ~Replies();

  [[nodiscard]] int fileno() const noexcept { return event_.fileno(); }
  /// `future` is a reference, which becomes the queue's.
  void add(PyObject* future, detail::Answer& answer) noexcept;
  /// The same with None as the answer.
  void add_wake(PyObject* future) noexcept;
  /// Completes the futures. With the GIL.
  void drain();

 private:
  struct Entry {
    PyObject* future;
    std::size_t begin;
    std::size_t size;
    std::unique_ptr<detail::Answer> failed;
    const Codec* codec = nullptr;  ///< of an answer
    bool is_wake = false;
  };

  /// `make()` returns an entry, with the mutex held.
  template <class Make>
  void push(const Make& make) noexcept;
  [[nodiscard]] Reader& reader_of(const Codec& codec);
  void complete(const Entry& entry, std::string_view text);

  WakeEvent event_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  Buffer texts_;
  // The asyncio loop's; kept for their memory.
  std::vector<Entry> taken_;
  Buffer taken_texts_;
  std::vector<std::unique_ptr<Reader>> readers_;  ///< of the encodings that answers have had
};

}  // namespace wirecall::python
