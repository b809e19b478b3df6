// See loop_context.hpp.
#include "rpc/loop_context.hpp"

#include <utility>

#include "message/transcoder.hpp"

namespace wirecall::rpc {
namespace {

const LogSink kNoLog;

}  // namespace

LoopCodecs::LoopCodecs(const Codec& codec)
    : codec(codec), readers{.reader = codec.reader(), .defaults = {}}, writer(codec.writer()) {}

LoopCodecs::~LoopCodecs() = default;

LoopCodecs::Scratch LoopCodecs::make_scratch() const {
  return {{.reader = codec.reader(), .defaults = {}}, std::make_unique<Elements>(), nullptr};
}

LoopCodecs::Scratch LoopCodecs::give_up_scratch(Scratch fresh) noexcept {
  return {std::exchange(readers, std::move(fresh.readers)), std::exchange(elements, std::move(fresh.elements)),
          std::move(msgpack_)};
}

message::Transcoder& LoopCodecs::transcoder() {
  if (!transcoder_) transcoder_ = std::make_unique<message::Transcoder>();
  return *transcoder_;
}

LoopCodecs::MsgpackCursors& LoopCodecs::msgpack() {
  if (!msgpack_) msgpack_ = std::make_unique<MsgpackCursors>();
  return *msgpack_;
}

LoopContext::LoopContext(const Codec& codec, Scheduler* timers, const LogSink* log)
    : scheduler(timers),
      log(log != nullptr ? log : &kNoLog),
      codecs(codec),
      services{.authority = nullptr, .call_log = &kNoLog},
      refusals(log, timers) {
  tasks.set_watchdog_slot(&services.watchdog_slot);
}

LoopContext::~LoopContext() = default;

}  // namespace wirecall::rpc
