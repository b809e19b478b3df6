// LoopContext: what the dispatchers of one thread share, in groups by who owns them: LoopCodecs reads and writes,
// LoopServices is what a server gives, LoopBatches are the batches in progress, LoopBudgets what the peers use
// together. Owned by whoever owns the loop; outlives the dispatchers. One thread (the loop's).
#pragma once

#include <array>
#include <unordered_map>

#include "message/message_codec.hpp"
#include "rpc/accounts.hpp"
#include "rpc/loop_caches.hpp"
#include "rpc/memory_budget.hpp"
#include "rpc/refusals.hpp"
#include "rpc/stop_requests.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/param_readers.hpp"
#include "wirecall/detail/watchdog_slot.hpp"
#include "wirecall/log.hpp"
#include "wirecall/message.hpp"
#include "wirecall/stats.hpp"
#include "wirecall/task.hpp"

namespace wirecall {
class Method;
namespace message {
class NativeTranscoder;
class MessageWriter;
class Transcoder;
}  // namespace message
}  // namespace wirecall

namespace wirecall::rpc {

class Authority;
class Broker;
class OwnCounts;
class RunningBatch;
class ServedPeer;
struct OpenBatch;

/// What reads and writes messages, with its scratch memory.
class LoopCodecs {
 public:
  explicit LoopCodecs(const Codec& codec);
  ~LoopCodecs();
  LoopCodecs(LoopCodecs&&) = delete;

  /// Of a batch that is being read; those beyond are read again when it is served.
  using Elements = std::array<Received, kBatchElementsKept>;

  /// What reads params and writes results in another encoding than JSON.
  struct Cursors {
    detail::ParamReaders readers;
    std::unique_ptr<Writer> writer;
  };
  using AllCursors = std::array<std::unique_ptr<Cursors>, message::kEncodingsMax>;

  /// What a handler that runs may still read from: it is given away, and replaced, when its thread loses the loop.
  struct Scratch {
    detail::ParamReaders readers;
    std::unique_ptr<Elements> elements;
    AllCursors cursors;
  };
  [[nodiscard]] Scratch make_scratch() const;
  /// Gives away what there is for `fresh`, which make_scratch has made.
  [[nodiscard]] Scratch give_up_scratch(Scratch fresh) noexcept;

  /// For peers that speak another encoding than JSON; made when the first does.
  [[nodiscard]] message::Transcoder& transcoder(Encoding encoding);
  /// Of one in which values stay.
  [[nodiscard]] message::NativeTranscoder& native(Encoding encoding);
  /// Of one in which a message has been read as it is.
  [[nodiscard]] message::MessageWriter& message_writer(Encoding encoding);
  [[nodiscard]] Cursors& cursors(Encoding encoding);
  /// Of values in that encoding.
  [[nodiscard]] detail::ParamReaders& readers_of(Encoding encoding) {
    return encoding == Encoding::json ? readers : cursors(encoding).readers;
  }
  [[nodiscard]] Writer& writer_of(MessageForm form) { return form.natively ? *cursors(form.sent).writer : *writer; }

  const Codec& codec;
  detail::ParamReaders readers;
  std::unique_ptr<Writer> writer;                                     ///< never null
  std::unique_ptr<Elements> elements = std::make_unique<Elements>();  ///< never null

 private:
  std::array<std::unique_ptr<message::Transcoder>, message::kEncodingsMax> transcoders_;
  std::array<message::MessageWriter*, message::kEncodingsMax> message_writers_{};  ///< of those
  AllCursors cursors_;
};

/// What a server gives to those whom it serves. Registry::handle and a client give less.
struct LoopServices {
  detail::WatchdogSlot* watchdog_slot = nullptr;   ///< null without a watchdog
  detail::BlockingPool* blocking_pool = nullptr;   ///< null where there are no threads for handlers that block
  std::shared_ptr<const Authority> authority;      ///< null where nobody has to say who he is
  Broker* broker = nullptr;                        ///< null where connections cannot provide methods for each other
  OwnCounts* own_counts = nullptr;                 ///< null where nobody asks how often each method has been called
  const LogSink* call_log;                         ///< of calls that reach no method; never null
  std::string_view title = "wirecall";             ///< of the server
  const std::vector<std::string>* urls = nullptr;  ///< at which its methods are called by HTTP; null for none
  void (*after_turn)() noexcept = nullptr;         ///< to be called once when the turn has ended; null for nothing
  bool has_turns = false;                          ///< a loop calls `after_turn`
  bool told_of_callers = false;                    ///< the peers say by `from` who calls, and are to be believed
};

/// The batches in progress (rpc/batch_run.hpp).
struct LoopBatches {
  Buffer scratch;  ///< for the replies of the next one
  /// What is left of those that are interrupted. Few peers have one at a time: so it stands in none of them.
  std::unordered_map<const ServedPeer*, std::shared_ptr<OpenBatch>> open;
  RunningBatch* running = nullptr;  ///< the innermost; null for none
};

/// What the peers of one loop use together, within limits.
struct LoopBudgets {
  Accounts accounts;
  MemoryBudget unidentified;          ///< where peers have to say who they are
  std::size_t half_closed_calls = 0;  ///< that wait for peers that have ended their side
};

struct LoopContext {
  /// Without `timers` nothing can wait; `log` may be null. Both outlive it.
  explicit LoopContext(const Codec& codec = json_codec(), Scheduler* timers = nullptr, const LogSink* log = nullptr);
  ~LoopContext();
  LoopContext(LoopContext&&) = delete;

  void write_log(LogLevel level, std::string_view line) const { (*log)(level, line); }
  /// 0 without a scheduler.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept {
    return scheduler != nullptr ? scheduler->now() : std::chrono::nanoseconds{0};
  }
  void stop(Timer& timer) const noexcept {
    if (scheduler != nullptr) scheduler->stop(timer);
  }

  Scheduler* scheduler;  ///< null where nothing can wait
  const LogSink* log;    ///< never null
  LoopCodecs codecs;
  LoopServices services;
  LoopBatches batches;
  LoopBudgets budgets;
  std::vector<const Method*> own_by_name;  ///< see next_own
  const Method* own_last = nullptr;        ///< the last method of the registry when they were sorted
  Refusals refusals;                       ///< who is told why
  mutable Stats stats;                     ///< of all that happens on this thread, whoever counts it
  StopRequests stop_requests{scheduler};
  LoopCaches caches;  ///< behind what they use
  TaskScope tasks;    ///< last: the tasks go before what they use
};

}  // namespace wirecall::rpc
