// See batch.hpp: what of a batch is no template. A batch is calls that a ClientCore writes as one message; everything
// else of them is as of any call.
#include "wirecall/batch.hpp"

#include "client/core.hpp"

namespace wirecall {

bool BatchHandle::cancel() const {
  bool any = false;
  for (const CallHandle& call : calls_) any |= call.cancel();
  return any;
}

namespace detail {

using net::ClientCall;

void OutgoingBatch::add(OutgoingCall call, std::size_t result) {
  if (context_) call.set_context(*context_);
  if (stop_) call.set_stop(*stop_);
  calls_.push_back(std::move(call));
  results_.push_back(result);
  result_count_ += result != kNoResult;
}

void OutgoingBatch::add_notification(OutgoingCall call) {
  call.make_notification();
  add(std::move(call), kNoResult);
}

void OutgoingBatch::set_timeout(std::chrono::milliseconds timeout) noexcept {
  for (OutgoingCall& call : calls_) call.set_timeout(timeout);
}

void OutgoingBatch::set_stop(const std::stop_token& stop) {
  stop_ = stop;
  for (OutgoingCall& call : calls_) call.set_stop(stop);
}

void OutgoingBatch::set_context(const Context& context) {
  context_ = context;
  stop_.reset();
  for (OutgoingCall& call : calls_) call.set_context(context);
}

void OutgoingBatch::wait(Each each) {
  std::vector<ClientCall*> calls;
  for (OutgoingCall& call : calls_) calls.push_back(&call.prepare());
  core_->call_and_wait(calls);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (results_[i] == kNoResult) continue;
    Answer answer = calls_[i].answer();
    each(results_[i], answer);
  }
}

BatchHandle OutgoingBatch::start(Each each, std::move_only_function<void()> done) {
  if (calls_.empty()) return start_nothing(std::move(done));
  struct Shared {
    Each each;
    std::move_only_function<void()> done;
    std::size_t left;
  };
  const auto shared = std::make_shared<Shared>(std::move(each), std::move(done), calls_.size());
  std::vector<ClientCall*> calls;
  BatchHandle handle;
  try {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      calls.push_back(&calls_[i].hand_in([shared, result = results_[i]](Answer& answer) {
        if (result != kNoResult) shared->each(result, answer);
        if (--shared->left == 0) shared->done();
      }));
      handle.calls_.push_back(calls_[i].handle());
    }
    core_->start(calls);
    return handle;
  } catch (...) {
    for (OutgoingCall& call : calls_) call.take_back();
    throw;
  }
}

// It ends as a batch does whose calls cannot be sent.
BatchHandle OutgoingBatch::start_nothing(std::move_only_function<void()> done) {
  OutgoingCall nothing = begin_call("");
  nothing.leave_unsent();
  nothing.start([done = std::move(done)](Answer&) mutable { done(); });
  return {};
}

void OutgoingBatch::forget() noexcept {
  for (OutgoingCall& call : calls_) call.forget();
}

void OutgoingBatch::cancel() const noexcept {
  for (const OutgoingCall& call : calls_) static_cast<void>(call.handle().cancel());
}

}  // namespace detail
}  // namespace wirecall
