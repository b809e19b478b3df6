#include "wirecall/detail/off_loop_reply.hpp"

#include "rpc/pending.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/spares.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::detail {

OffLoopReply::OffLoopReply(const Call& call) noexcept : codec_(call.is_notification() ? nullptr : &call.codec()) {
  if (call.uses_own_form()) use_own_form(call.method());
}

OffLoopReply::~OffLoopReply() { keep_spare(std::move(value_)); }

void OffLoopReply::use_own_form(const Method& method) noexcept {
  if (!method.keeps_results()) own_form_of_ = &method;
}

Writer* OffLoopReply::begin_result() {
  if (codec_ == nullptr) return nullptr;
  if (!writer_) writer_ = take_writer(*codec_);
  if (value_.capacity() == 0) value_ = take_buffer();
  value_.clear();
  writer_->reset(value_);
  if (own_form_of_ != nullptr) rpc::use_own_form(*writer_, *own_form_of_);
  return writer_.get();
}

void OffLoopReply::end_result() {
  if (!writer_) return;
  failure_ = writer_->failure();
  keep_spare(*codec_, std::move(writer_));
}

template <class Sink>
void OffLoopReply::give_to(Sink& sink) const noexcept {
  try {
    if (exception_) std::rethrow_exception(exception_);
    if (error_) return sink.error(*error_);
    sink.encoded_result(value_.view(), failure_);
  } catch (...) {
    sink.error_in_flight();
  }
}

void OffLoopReply::give(Call& call) const noexcept { give_to(call); }

void OffLoopReply::give(ReplySink& sink) const noexcept { give_to(sink); }

}  // namespace wirecall::detail
