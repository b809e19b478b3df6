#include "wirecall/detail/off_loop_reply.hpp"

#include "wirecall/call.hpp"

namespace wirecall::detail {

OffLoopReply::OffLoopReply(const Call& call) noexcept : codec_(call.is_notification() ? nullptr : &call.codec()) {}

Writer* OffLoopReply::begin_result() {
  if (codec_ == nullptr) return nullptr;
  if (!writer_) writer_ = codec_->writer();
  value_.clear();
  writer_->reset(value_);
  return writer_.get();
}

template <class Sink>
void OffLoopReply::give_to(Sink& sink) const noexcept {
  try {
    if (exception_) std::rethrow_exception(exception_);
    if (error_) return sink.error(*error_);
    sink.encoded_result(value_.view(), writer_ ? writer_->failure() : std::string_view{});
  } catch (...) {
    sink.error_in_flight();
  }
}

void OffLoopReply::give(Call& call) const noexcept { give_to(call); }

void OffLoopReply::give(ReplySink& sink) const noexcept { give_to(sink); }

}  // namespace wirecall::detail
