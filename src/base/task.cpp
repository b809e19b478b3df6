// What is behind Task and is no template: the loop that runs coroutines, waiting, joining, sleeping.
#include "wirecall/task.hpp"

#include "base/assert.hpp"
#include "wirecall/detail/watchdog_slot.hpp"

namespace wirecall {
namespace detail {

static thread_local const void* handled_call = nullptr;

bool runs_handler_of(const void* call) noexcept { return call != nullptr && handled_call == call; }

HandlerScope::HandlerScope(const void* call) noexcept : outer_(std::exchange(handled_call, call)) {}

HandlerScope::~HandlerScope() { handled_call = outer_; }

void Root::run(Turn& turn) noexcept {
  while (turn.next != nullptr) {
    // Nothing of a root is looked at after its coroutine has run: it may have finished, or run on another thread by
    // now.
    Root& root = *std::exchange(turn.next, nullptr);
    root.turn_ = &turn;
    if (root.current_ != nullptr) {
      const std::coroutine_handle<> innermost = root.current_->self;
      const HandlerScope handler{root.call_};
      if (root.method_ == nullptr) [[likely]] {
        innermost.resume();
      } else {
        // A coroutine touches its loop, and so keeps it.
        const WatchdogScope scope{*root.watchdog_slot_, *root.method_, nullptr, WatchdogSlot::kKeepsLoop};
        innermost.resume();
      }
    } else {
      root.finished(turn);
    }
  }
}

void Root::unwind() noexcept {
  unwinding_ = true;
  while (current_ != nullptr) {
    PromiseBase& innermost = *std::exchange(current_, current_->parent);
    // Its owner lives in the frame of the next one, and must not destroy it again.
    *innermost.owner = nullptr;
    innermost.self.destroy();
  }
}

StartedRoot::StartedRoot(StartedRoot** first) noexcept : link_(first) {
  if (link_ == nullptr) return;
  next_ = std::exchange(*link_, this);
  if (next_ != nullptr) next_->link_ = &next_;
}

void StartedRoot::unlink() noexcept {
  if (link_ == nullptr) return;
  WIRECALL_ASSERT(*link_ == this);
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  link_ = nullptr;
}

bool Waiter::wait(Root& root) {
  stopped_ = root.stop_.stop_requested();
  if (stopped_) return false;
  if (!root.on_stop_ && root.stop_.stop_possible()) root.on_stop_.emplace(root.stop_, Root::OnStop{&root});
  root_ = &root;
  root.waiter_ = this;
  return true;
}

void Waiter::wake() noexcept {
  WIRECALL_ASSERT(root_ != nullptr && root_->waiter_ == this);
  root_->waiter_ = nullptr;
  root_->run();
}

void Root::OnStop::operator()() const noexcept {
  Waiter* const stopped = std::exchange(root->waiter_, nullptr);
  if (stopped == nullptr) return;
  stopped->stopped_ = true;
  stopped->forget();
  // Where that destroys the root, it destroys the stop_callback that runs this, which is allowed on the thread that
  // runs it.
  root->run();
}

void JoinedRoot::finished(Turn& turn) noexcept { join_->finished(*this, turn); }

Join::Join(DecidedBy decided_by, const std::stop_token& parent)
    : decided_by_(decided_by), forward_(parent, Forward{this}) {}

void Join::add(JoinedRoot& root) noexcept {
  root.join_ = this;
  root.index_ = last_ == nullptr ? 0 : last_->index_ + 1;
  (last_ == nullptr ? first_ : last_->next_) = &root;
  last_ = &root;
}

bool Join::run_all(Root& parent) noexcept {
  parent_ = &parent;
  pending_ = 1;  // this function: those that finish while it runs must not resume the parent
  for (JoinedRoot* root = first_; root != nullptr && decider_ == nullptr; root = root->next_) {
    ++pending_;
    root->belong_to(parent);
    root->start(stop_.get_token());
  }
  return --pending_ != 0;
}

void Join::finished(JoinedRoot& root, Turn& turn) noexcept {
  WIRECALL_ASSERT(pending_ != 0);
  if (decider_ == nullptr && (decided_by_ == DecidedBy::finish || root.error())) {
    decider_ = &root;
    failure_ = root.error();
    request_stop();
  }
  // A destructor in a frame of the parent, while it is unwound, may have completed what the last task waited for.
  if (--pending_ == 0 && !parent_->unwinding()) turn.next = parent_;
}

void Join::request_stop() noexcept {
  // Those that stop may be the last ones, and the parent, resumed, destroys this: keep what is being used.
  std::stop_source stop = stop_;
  stop.request_stop();
}

void Join::await_resume() const {
  if (failure_) std::rethrow_exception(failure_);
}

namespace {

class Sleep final : public Timer, private Waiter {
 public:
  Sleep(Scheduler& scheduler, std::chrono::nanoseconds duration) noexcept
      : scheduler_(&scheduler), duration_(duration) {}
  ~Sleep() { forget(); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (!wait(*coroutine.promise().root)) return false;
    scheduler_->start(*this, duration_);
    running_ = true;
    return true;
  }
  void await_resume() const { throw_if_stopped(); }

 private:
  void expired() override {
    running_ = false;
    wake();
  }
  void forget() noexcept override {
    if (std::exchange(running_, false)) scheduler_->stop(*this);
  }

  Scheduler* scheduler_;
  std::chrono::nanoseconds duration_;
  bool running_ = false;
};

}  // namespace
}  // namespace detail

void TaskScope::destroy_all() noexcept {
  while (first_ != nullptr) {
    detail::StartedRoot* root = first_;
    root->unlink();
    delete root;
  }
}

Task<void> when_all(std::vector<Task<void>> tasks) {
  const std::stop_token& stop = co_await this_task::stop_token();
  detail::Join join{detail::Join::DecidedBy::failure, stop};
  std::deque<detail::JoinedTask<void>> roots = detail::joined(tasks, join);
  co_await join;
}

Task<void> sleep_for(Scheduler& scheduler, std::chrono::nanoseconds duration) {
  co_await detail::Sleep{scheduler, duration};
}

Task<void> sleep_for(const Context& context, std::chrono::nanoseconds duration) {
  if (context.scheduler() == nullptr) {
    throw Error(
        "sleep_for: there are no timers here: the registry is called directly, or a generated protobuf service, which "
        "may "
        "go on after its server; give a Scheduler");
  }
  return sleep_for(*context.scheduler(), duration);
}

}  // namespace wirecall
