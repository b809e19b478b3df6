// See controller.hpp.
#include "wirecall/protobuf/controller.hpp"

#include <algorithm>
#include <stdexcept>

#include "wirecall/request.hpp"

namespace wirecall::protobuf {

using std::chrono::milliseconds;

Controller::Controller(const Context& within) : context_(within), within_(true) {
  outer_.emplace(context_.stop_token(), [stop = stop_]() mutable { stop.request_stop(); });
}

Controller::~Controller() { answered(); }

Controller& Controller::of(google::protobuf::RpcController* controller) {
  if (auto* const own = dynamic_cast<Controller*>(controller)) return *own;
  throw std::invalid_argument{"wirecall: this is no wirecall::protobuf::Controller"};
}

void Controller::Reset() {
  outer_.reset();
  stop_ = std::stop_source{};
  if (within_) outer_.emplace(context_.stop_token(), [stop = stop_]() mutable { stop.request_stop(); });
  error_.reset();
  timeout_.reset();
}

bool Controller::IsCanceled() const { return served_ ? context_.cancelled() : stop_.stop_requested(); }

void Controller::NotifyOnCancel(google::protobuf::Closure* callback) {
  on_cancel_.store(callback);
  cancelled_.emplace(served_ ? context_.stop_token() : stop_.get_token(), [this] { run_on_cancel(); });
}

void Controller::run_on_cancel() {
  if (google::protobuf::Closure* const callback = on_cancel_.exchange(nullptr)) callback->Run();
}

// The closure has run or runs now, so that it may be forgotten.
void Controller::answered() {
  cancelled_.reset();
  run_on_cancel();
}

void Controller::apply_to(wirecall::detail::OutgoingCall& call) {
  std::optional<milliseconds> timeout = timeout_;
  if (within_) {
    call.set_context(context_);
    if (timeout && context_.remaining() != kNoDeadline)
      timeout = std::min(*timeout, std::chrono::ceil<milliseconds>(context_.remaining()));
  }
  if (timeout) call.set_timeout(*timeout);
  call.set_stop(stop_.get_token());
}

}  // namespace wirecall::protobuf
