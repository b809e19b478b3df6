// Where a client's call takes the stream from that it sends towards its handler. IteratorSource: an iterator, which the
// thread that drives a blocking client asks for each item. InputQueue: items that a task of an asyncio loop puts in
// (wirecall/aclient.py), up to 16 ahead. Both need the GIL for each item, on the thread that drives.
#pragma once

#include <deque>
#include <mutex>
#include <nanobind/nanobind.h>

#include "gil.hpp"
#include "replies.hpp"
#include "wirecall/detail/input_source.hpp"

namespace wirecall::python {

/// What an iterator has raised, for the thread that has called. With the GIL.
struct SourceFailure {
  SharedObject exception;
};

class IteratorSource final : public detail::InputSource {
 public:
  /// With the GIL.
  IteratorSource(nanobind::object iterator, std::shared_ptr<SourceFailure> failure);

  Next next(Writer& writer, detail::InputDriver& driver) override;
  [[nodiscard]] bool may_block() noexcept override { return may_block_; }

 private:
  SharedObject iterator_;
  std::shared_ptr<SourceFailure> failure_;
  bool may_block_;  // what it makes an item of may take any time
};

class InputQueue final : public std::enable_shared_from_this<InputQueue> {
 public:
  /// `replies` wakes the asyncio loop.
  explicit InputQueue(std::shared_ptr<Replies> replies) noexcept : replies_(std::move(replies)) {}
  InputQueue(InputQueue&&) = delete;
  ~InputQueue();

  [[nodiscard]] std::unique_ptr<detail::InputSource> source();

  // ---- asyncio's thread, with the GIL ----

  /// False when there is no room for another one, or nobody wants one.
  [[nodiscard]] bool push(nanobind::object item);
  void end() { finish(Ended::normally); }
  /// The call ends with a LocalError.
  void fail() { finish(Ended::by_failure); }
  /// `future` is given a result when there is room, or nobody wants more.
  void on_writable(nanobind::object future);
  [[nodiscard]] bool wanted() const;

 private:
  class Source;
  enum class Ended : std::uint8_t { no, normally, by_failure };

  // The thread that drives.
  [[nodiscard]] detail::InputSource::Next next(Writer& writer, detail::InputDriver& driver);
  void close() noexcept;

  void finish(Ended how);
  [[nodiscard]] bool has_room() const noexcept;
  void wake_driver();
  void wake_writer() noexcept;

  std::shared_ptr<Replies> replies_;
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<SharedObject>> items_;
  Ended ended_ = Ended::no;
  bool asked_ = false;          // the server has room for an item
  bool closed_ = false;         // nobody wants more
  PyObject* future_ = nullptr;  // a reference, until it is woken
  std::shared_ptr<detail::Executor> executor_;
  std::function<void()> waker_;  // the driver waits for an item
};

void add_client_input(nanobind::module_& module);

}  // namespace wirecall::python
