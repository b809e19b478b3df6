// See watch.hpp.
#include "wirecall/watch.hpp"

#include <fcntl.h>

#include "base/assert.hpp"
#include "runtime/descriptor.hpp"
#include "runtime/turn.hpp"
#include "wirecall/loop.hpp"

namespace wirecall {

// Outlives its Watch while the function is being called.
struct Watch::State final : runtime::IoUser, std::enable_shared_from_this<State> {
  State(Loop& owner, int descriptor, WatchFunction told)
      : loop(&owner), function(std::move(told)), handle(attach(owner, descriptor)) {}
  State(State&&) = delete;
  ~State() { loop->detach(handle); }

  void want(Readiness now_wanted) {
    loop->submit({.kind = runtime::OperationKind::poll, .wanted = now_wanted, .handle = handle, .buffer = {}});
    wanted = now_wanted;
  }
  void completed(runtime::Completion& completion) override {
    WIRECALL_ASSERT(completion.kind == runtime::OperationKind::poll);
    // What was wanted when it was found may not be any more.
    const Readiness ready = completion.ready & wanted;
    if (ready == Readiness::none && completion.error == 0) return;
    const std::shared_ptr<State> alive = shared_from_this();
    function(ready, completion.error);
  }

  Loop* loop;
  WatchFunction function;
  runtime::Handle handle;
  Readiness wanted = Readiness::none;

 private:
  runtime::Handle attach(Loop& owner, int descriptor) {
    runtime::Descriptor duplicate{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "a descriptor cannot be watched"};
    const runtime::Handle attached = owner.attach(duplicate.get(), *this);
    static_cast<void>(duplicate.release());
    return attached;
  }
};

Watch::Watch() noexcept = default;
Watch::Watch(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&& other) noexcept {
  Watch former{std::exchange(state_, std::move(other.state_))};
  return *this;
}

Watch::~Watch() {
  // At once, and not when a call of the function has ended.
  if (state_ != nullptr) state_->loop->detach(state_->handle);
}

void Watch::want(Readiness wanted) {
  WIRECALL_ASSERT(state_ != nullptr);
  state_->want(wanted);
}

Watch Loop::watch(int descriptor, Readiness wanted, WatchFunction function) {
  auto state = std::make_shared<Watch::State>(*this, descriptor, std::move(function));
  state->want(wanted);
  return Watch{std::move(state)};
}

}  // namespace wirecall
