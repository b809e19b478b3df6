// HandlerInput: the stream that a caller sends towards a Python handler, between the loop's thread, which takes the
// items as they came, and the handler's, which decodes them as it iterates. Up to 16 items are taken ahead of it,
// besides those for which the caller has credit (src/rpc/received_input.hpp). Shared by both threads. Implements
// docs/wire.md "Streams towards a handler".
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <nanobind/nanobind.h>
#include <stop_token>

#include "async_calls.hpp"
#include "gil.hpp"
#include "shape.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::python {

class HandlerInput final : public std::enable_shared_from_this<HandlerInput> {
 public:
  /// An empty one. `item` outlives it.
  explicit HandlerInput(const Shape& item) noexcept : shape_(&item), ended_(true) {}
  /// `calls` is asyncio's, for an async handler.
  HandlerInput(const Shape& item, Call& call, std::weak_ptr<AsyncCalls> calls);
  HandlerInput(HandlerInput&&) = delete;

  /// Begins to take items from `input`, in a task of the call's loop. On that thread.
  void start(std::shared_ptr<detail::Input> input, Call& call);

  // ---- the handler's thread, with the GIL ----

  /// Blocks for the next item; StopIteration at the end. Raises the error that the stream has ended with.
  [[nodiscard]] nanobind::object next();
  /// (item,), or () at the end, without blocking; None when nothing has come yet. Raises as `next`.
  [[nodiscard]] nanobind::object take();
  /// `future` is given a result when there is something to take.
  void on_readable(nanobind::object future);

  // ---- any thread ----

  /// The handler has ended: nothing is taken any more.
  void close() noexcept;

 private:
  struct Item {
    Buffer text;
    const Codec* codec;
  };
  class Awaiter;
  struct TaskEnd;

  static Task<void> take_items(std::shared_ptr<HandlerInput> self, std::shared_ptr<detail::Input> input);

  // The loop's thread.
  /// Whether there is room for another one.
  [[nodiscard]] bool put(Item item);
  void await_room(Completion<> room);
  void end(std::optional<Error> error);
  void task_ended() noexcept;

  [[nodiscard]] std::optional<Item> pop();
  [[nodiscard]] bool readable() const noexcept { return !items_.empty() || ended_ || over_ || error_; }
  void tell();
  [[nodiscard]] nanobind::object decode(Item item);
  void raise_failure();

  struct Forward {
    std::stop_source stop;
    void operator()() const noexcept {
      std::stop_source kept = stop;  // this may go meanwhile
      kept.request_stop();
    }
  };

  const Shape* shape_;
  std::weak_ptr<AsyncCalls> calls_;
  std::shared_ptr<detail::Executor> executor_;
  std::stop_source stop_;                               // of the task
  std::optional<std::stop_callback<Forward>> forward_;  // from the call's
  std::unique_ptr<Reader> reader_;                      // the handler's
  std::uint64_t count_ = 0;                             // of items that have been decoded

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::optional<Error> error_;
  std::optional<Completion<>> room_;
  SharedObject future_;
  bool future_waits_ = false;
  bool ended_ = false;  // by the caller
  bool over_ = false;   // nothing comes any more, without an end
  bool closed_ = false;
};

/// What the handler of one call has of its input; null where it takes none. The input is closed with it.
class InputShare {
 public:
  explicit InputShare(std::shared_ptr<HandlerInput> input = nullptr) noexcept : input_(std::move(input)) {}
  InputShare(InputShare&&) noexcept = default;
  InputShare& operator=(InputShare&&) = delete;
  ~InputShare() {
    if (input_ != nullptr) input_->close();
  }
  [[nodiscard]] const std::shared_ptr<HandlerInput>& get() const noexcept { return input_; }

 private:
  std::shared_ptr<HandlerInput> input_;
};

/// A new reference to what the handler iterates over; null with a Python exception set. With the GIL.
[[nodiscard]] PyObject* make_input(std::shared_ptr<HandlerInput> input, bool asynchronous);

void add_handler_input(nanobind::module_& module);

}  // namespace wirecall::python
