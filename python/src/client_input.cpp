// See client_input.hpp.
#include "client_input.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <stdexcept>

#include "continuation.hpp"
#include "encode.hpp"
#include "exception.hpp"
#include "reference.hpp"

namespace wirecall::python {
namespace nb = nanobind;
using Next = detail::InputSource::Next;

// Items that an asyncio task makes ahead.
constexpr std::size_t kItemsMax = 16;

// With the GIL.
static void write_item(Writer& writer, PyObject* item) {
  std::string where;
  if (!encode(writer, item, where) && !where.empty()) writer.fail(where);
}

IteratorSource::IteratorSource(nb::object iterator, std::shared_ptr<SourceFailure> failure)
    : iterator_(std::move(iterator)), failure_(std::move(failure)) {
  const PyTypeObject* const type = Py_TYPE(iterator_.get().ptr());
  may_block_ = type != &PyListIter_Type && type != &PyTupleIter_Type && type != &PyRangeIter_Type;
}

Next IteratorSource::next(Writer& writer, detail::InputDriver&) {
  const Gil gil;
  const Reference item = Reference::steal(PyIter_Next(iterator_.get().ptr()));
  if (item) {
    write_item(writer, item.get());
    return Next::item;
  }
  if (PyErr_Occurred() == nullptr) return Next::end;
  Reference exception = take_exception();
  failure_->exception = nb::borrow(exception.get());
  restore_exception(std::move(exception));
  throw std::runtime_error(take_exception_text());
}

class InputQueue::Source final : public detail::InputSource {
 public:
  explicit Source(std::shared_ptr<InputQueue> queue) noexcept : queue_(std::move(queue)) {}
  ~Source() override { queue_->close(); }
  Next next(Writer& writer, detail::InputDriver& driver) override { return queue_->next(writer, driver); }
  [[nodiscard]] bool may_block() noexcept override { return false; }

 private:
  std::shared_ptr<InputQueue> queue_;
};

InputQueue::~InputQueue() {
  if (future_ == nullptr || Py_IsInitialized() == 0) return;
  const Gil gil;
  Py_DECREF(future_);
}

std::unique_ptr<detail::InputSource> InputQueue::source() { return std::make_unique<Source>(shared_from_this()); }

// ---- the thread that drives ----

Next InputQueue::next(Writer& writer, detail::InputDriver& driver) {
  std::unique_ptr<SharedObject> item;
  {
    const std::scoped_lock lock{mutex_};
    if (items_.empty()) {
      if (ended_ == Ended::by_failure) throw std::runtime_error("it has raised an exception");
      if (ended_ == Ended::normally) return Next::end;
      executor_ = driver.executor();
      waker_ = driver.waker();
      asked_ = true;
      wake_writer();
      return Next::none;
    }
    item = std::move(items_.front());
    items_.pop_front();
    if (items_.size() < kItemsMax / 2) wake_writer();
  }
  const Gil gil;
  write_item(writer, item->get().ptr());
  item.reset();
  return Next::item;
}

void InputQueue::close() noexcept {
  std::deque<std::unique_ptr<SharedObject>> items;  // go after the mutex, for which a thread with the GIL may wait
  const std::scoped_lock lock{mutex_};
  closed_ = true;
  waker_ = nullptr;
  items.swap(items_);
  wake_writer();
}

// With the mutex held.
void InputQueue::wake_writer() noexcept {
  if (future_ != nullptr) replies_->add_wake(std::exchange(future_, nullptr));
}

// ---- asyncio's thread ----

bool InputQueue::has_room() const noexcept { return asked_ && items_.size() < kItemsMax; }

bool InputQueue::push(nb::object item) {
  auto kept = std::make_unique<SharedObject>(std::move(item));
  const std::scoped_lock lock{mutex_};
  if (closed_ || ended_ != Ended::no) return false;
  items_.push_back(std::move(kept));
  wake_driver();
  return has_room();
}

void InputQueue::finish(Ended how) {
  const std::scoped_lock lock{mutex_};
  if (ended_ != Ended::no) return;
  ended_ = how;
  wake_driver();
}

// With the mutex held.
void InputQueue::wake_driver() {
  if (waker_) executor_->post(make_continuation([waker = std::exchange(waker_, nullptr)] { waker(); }));
}

void InputQueue::on_writable(nb::object future) {
  PyObject* former = nullptr;
  {
    const std::scoped_lock lock{mutex_};
    former = std::exchange(future_, future.release().ptr());
    if (closed_ || has_room()) wake_writer();
  }
  Py_XDECREF(former);
}

bool InputQueue::wanted() const {
  const std::scoped_lock lock{mutex_};
  return !closed_ && ended_ == Ended::no;
}

void add_client_input(nb::module_& module) {
  nb::class_<InputQueue>(module, "InputQueue")
      .def(nb::new_([](std::shared_ptr<Replies> replies) { return std::make_shared<InputQueue>(std::move(replies)); }))
      .def(
          "push", [](InputQueue& queue, nb::object item) { return queue.push(std::move(item)); },
          nb::arg("item").none())
      .def("end", &InputQueue::end)
      .def("fail", &InputQueue::fail)
      .def("on_writable", &InputQueue::on_writable)
      .def_prop_ro("wanted", &InputQueue::wanted);
}

}  // namespace wirecall::python
