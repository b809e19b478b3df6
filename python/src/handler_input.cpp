// See handler_input.hpp.
#include "handler_input.hpp"

#include <nanobind/stl/shared_ptr.h>

#include "continuation.hpp"
#include "errors.hpp"
#include "reference.hpp"

namespace wirecall::python {
namespace nb = nanobind;

// Items that are taken ahead of the handler.
constexpr std::size_t kItemsMax = 16;

// ---- the loop's thread ----

class HandlerInput::Awaiter final : public detail::InputWaiter {
 public:
  using InputWaiter::InputWaiter;

  std::optional<Item> await_resume() {
    throw_if_stopped();
    Reader* const reader = take();
    if (reader == nullptr) return std::nullopt;
    return Item{.text = Buffer{reader->skip()}, .codec = &reader->codec()};
  }
};

// However the task ends, also where its loop does.
struct HandlerInput::TaskEnd {
  explicit TaskEnd(HandlerInput& of) noexcept : input(&of) {}
  TaskEnd(TaskEnd&&) = delete;
  ~TaskEnd() { input->task_ended(); }
  HandlerInput* input;
};

HandlerInput::HandlerInput(const Shape& item, Call& call, std::weak_ptr<AsyncCalls> calls)
    : shape_(&item), calls_(std::move(calls)), executor_(call.executor()) {}

void HandlerInput::start(std::shared_ptr<detail::Input> input, Call& call) {
  if (input == nullptr) return end(std::nullopt);
  forward_.emplace(call.stop_token(), Forward{stop_});
  call.tasks().start(take_items(shared_from_this(), std::move(input)), stop_.get_token(),
                     [](const TaskResult<void>&) {});
}

Task<void> HandlerInput::take_items(std::shared_ptr<HandlerInput> self, std::shared_ptr<detail::Input> input) {
  const TaskEnd task_end{*self};
  try {
    for (;;) {
      std::optional<Item> item = co_await Awaiter{input};
      if (!item) break;
      if (self->put(std::move(*item))) continue;
      const Completion<> room;
      self->await_room(room);
      co_await room;
    }
    self->end(std::nullopt);
  } catch (const Cancelled&) {
    // Nobody wants more.
  } catch (const Error& error) {
    self->end(error);
  }
}

bool HandlerInput::put(Item item) {
  const std::scoped_lock lock{mutex_};
  if (closed_) return true;
  items_.push_back(std::move(item));
  tell();
  return items_.size() < kItemsMax;
}

void HandlerInput::await_room(Completion<> room) {
  std::unique_lock lock{mutex_};
  if (items_.size() >= kItemsMax / 2 && !closed_) {
    room_.emplace(std::move(room));
    return;
  }
  lock.unlock();
  room.set();
}

void HandlerInput::end(std::optional<Error> error) {
  const std::scoped_lock lock{mutex_};
  ended_ = !error;
  error_ = std::move(error);
  tell();
}

void HandlerInput::task_ended() noexcept {
  forward_.reset();
  const std::scoped_lock lock{mutex_};
  over_ = true;
  tell();
}

// With the mutex held.
void HandlerInput::tell() {
  changed_.notify_all();
  if (!std::exchange(future_waits_, false)) return;
  const auto calls = calls_.lock();
  if (calls == nullptr) return;
  calls->call_soon([self = shared_from_this()](PyObject*) {
    nb::object future;
    {
      const std::scoped_lock lock{self->mutex_};
      future = self->future_.take();
    }
    if (future.is_valid() && !nb::cast<bool>(future.attr("done")())) future.attr("set_result")(nb::none());
  });
}

// ---- the handler's thread ----

std::optional<HandlerInput::Item> HandlerInput::pop() {
  const std::scoped_lock lock{mutex_};
  if (items_.empty()) return std::nullopt;
  Item item = std::move(items_.front());
  items_.pop_front();
  if (room_ && items_.size() < kItemsMax / 2) {
    executor_->post(make_continuation([room = std::move(*room_)] { room.set(); }));
    room_.reset();
  }
  return item;
}

nb::object HandlerInput::next() {
  std::optional<Item> item = pop();
  if (!item) {
    {
      const Released released;
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [this] { return readable(); });
    }
    item = pop();
  }
  if (item) return decode(std::move(*item));
  raise_failure();
  throw nb::stop_iteration();
}

nb::object HandlerInput::take() {
  for (;;) {
    if (std::optional<Item> item = pop()) return nb::make_tuple(decode(std::move(*item)));
    const std::scoped_lock lock{mutex_};
    if (!readable()) return nb::none();
    if (items_.empty()) break;  // else one has come meanwhile
  }
  raise_failure();
  return nb::make_tuple();
}

void HandlerInput::on_readable(nb::object future) {
  nb::object former;  // goes after the mutex
  const std::scoped_lock lock{mutex_};
  former = future_.take();
  future_ = std::move(future);
  future_waits_ = true;
  if (readable()) tell();
}

void HandlerInput::raise_failure() {
  std::optional<Error> error;
  {
    const std::scoped_lock lock{mutex_};
    if (ended_) return;
    error = error_;
  }
  raise(error ? *error : Error{Cancelled{}});
}

nb::object HandlerInput::decode(Item item) {
  if (reader_ == nullptr || &reader_->codec() != item.codec) reader_ = item.codec->reader();
  reader_->reset(item.text.padded());
  const std::uint64_t number = count_++;
  PyObject* const value = shape_->decode(*reader_);
  if (value != nullptr) return nb::steal(value);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();  // what looks at it has failed
  static_cast<void>(reader_->failed_at(number));
  static_cast<void>(reader_->failed_at("input"));
  Error error = decode_error(*reader_);
  reader_->clear_failure();
  {
    const std::scoped_lock lock{mutex_};
    ended_ = false;
    error_ = error;
  }
  close();
  raise(error);
}

void HandlerInput::close() noexcept {
  std::deque<Item> items;
  const std::scoped_lock lock{mutex_};
  if (std::exchange(closed_, true)) return;
  items.swap(items_);
  room_.reset();
  if (executor_ == nullptr) return;
  try {
    executor_->post(make_continuation([self = shared_from_this()] { self->stop_.request_stop(); }));
  } catch (const std::bad_alloc&) {
    // The task goes with its loop.
  }
}

PyObject* make_input(std::shared_ptr<HandlerInput> input, bool asynchronous) {
  try {
    nb::object made = nb::cast(std::move(input));
    if (asynchronous) made = nb::module_::import_("wirecall._asyncio_thread").attr("items_of")(made);
    return made.release().ptr();
  } catch (nb::python_error& failure) {
    failure.restore();
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_RuntimeError, failure.what());
  }
  return nullptr;
}

void add_handler_input(nb::module_& module) {
  nb::class_<HandlerInput>(module, "Input")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &HandlerInput::next)
      .def("take", &HandlerInput::take)
      .def("on_readable", &HandlerInput::on_readable);
}

}  // namespace wirecall::python
