// See invocation.hpp.
#include "rpc/invocation.hpp"

namespace wirecall {

void Next::operator()(Call& call) const {
  if (count_ == 0) return call.method().invoke(call);
  (*rest_)(call, Next{rest_ + 1, count_ - 1});
}

namespace rpc {

void serve_message(ServedPeer& peer, const Received& message, CallState& state) {
  Invocation::serve(peer, message, state);
}

void Invocation::serve_alone(const Method& method, const Received& message, CallState& state) {
  Call call{state, message, method, state.peer.loop.services.watchdog_slot};
  run(state.peer, call, state);
}

std::string_view Invocation::unescaped_method(const ServedPeer& peer, const Received& message) {
  std::string_view name;
  Reader& reader = *peer.loop.codecs.readers.reader;
  reader.reset(message[Member::method]);
  static_cast<void>(reader.read_string(name));
  return name;
}

// A call that is answered at once is timed where it is the method's first in its turn: looking at the clock costs as
// much as many a method, and next to nothing beside a turn. Those that wait are timed when they are closed.
[[gnu::noinline]] void Invocation::run_timed(Call& call, CallState& state, OwnCountsRow& row) {
  const LoopContext& loop = state.peer.loop;
  row.timed_in = loop.stats.loop_turns;
  const std::chrono::nanoseconds began = loop.now();
  run(state.peer, call, state);
  if (!state.waits && loop.scheduler != nullptr) row.record(loop.now() - began);
}

void Invocation::answer_exception(Call& call, const CallState& state) {
  if (state.answered && !state.reply.begun() && call.late_sink() == nullptr) {
    static_cast<void>(
        error_of_exception(state.peer.loop, call.method()));  // too late for the peer, but not for the log
  } else {
    call.error_in_flight();
  }
}

void Invocation::answer_silence(Call& call, const CallState& state) {
  state.peer.loop.write_log(LogLevel::error, "method " + call.method().name() + ": nobody answered the call");
  call.error(Error{ErrorCode::internal_error});
}

}  // namespace rpc
}  // namespace wirecall
