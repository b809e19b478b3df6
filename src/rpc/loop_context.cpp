// See loop_context.hpp.
#include "rpc/loop_context.hpp"

#include "message/transcoder.hpp"

namespace wirecall::rpc {

const LogSink kNoLog;

LoopCodecs::LoopCodecs(const Codec& codec)
    : codec(codec), readers{.reader = codec.reader(), .defaults = {}}, writer(codec.writer()) {}

LoopCodecs::~LoopCodecs() = default;

LoopCodecs::Scratch LoopCodecs::make_scratch() const {
  return {{.reader = codec.reader(), .defaults = {}}, std::make_unique<Elements>(), {}};
}

LoopCodecs::Scratch LoopCodecs::give_up_scratch(Scratch fresh) noexcept {
  return {std::exchange(readers, std::move(fresh.readers)), std::exchange(elements, std::move(fresh.elements)),
          std::exchange(cursors_, {})};
}

message::Transcoder& LoopCodecs::transcoder(Encoding encoding) {
  std::unique_ptr<message::Transcoder>& made = transcoders_[static_cast<std::size_t>(encoding)];
  if (!made) made = message::codec_of(encoding).make_transcoder();
  return *made;
}

message::NativeTranscoder& LoopCodecs::native(Encoding encoding) {
  WIRECALL_DEBUG_ASSERT(message::codec_of(encoding).is_native);
  return static_cast<message::NativeTranscoder&>(transcoder(encoding));
}

message::MessageWriter& LoopCodecs::message_writer(Encoding encoding) {
  message::MessageWriter*& writer = message_writers_[static_cast<std::size_t>(encoding)];
  if (writer == nullptr) writer = transcoder(encoding).message_writer();
  return *writer;
}

LoopCodecs::Cursors& LoopCodecs::cursors(Encoding encoding) {
  std::unique_ptr<Cursors>& made = cursors_[static_cast<std::size_t>(encoding)];
  if (!made) {
    const Codec& values = message::codec_of(encoding).values();
    made = std::make_unique<Cursors>(
        Cursors{.readers = {.reader = values.reader(), .defaults = {}}, .writer = values.writer()});
  }
  return *made;
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
