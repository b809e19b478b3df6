// See work_queues.hpp.
#include "broker/work_queues.hpp"

#include "broker/durable_answers.hpp"
#include "broker/outgoing.hpp"
#include "broker/stream_request.hpp"
#include "message/own_error.hpp"
#include "rpc/internal_call.hpp"

namespace wirecall::broker {

using durable::Job;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Jobs of one method that are called at once: of one of the process's own, and for each provider without a limit of its
// own; of all providers together.
constexpr std::size_t kWindow = 16;
constexpr std::size_t kWindowMax = 256;
// Before one is tried again that has failed often.
constexpr milliseconds kLongestPause{60'000};
// Before one is tried again that nobody has got.
constexpr milliseconds kUntriedPause{250};
// Before what has become of a job is told the disk again, which has not taken it.
constexpr milliseconds kUnsavedPause{1000};
// Of params of jobs that are taken at once.
constexpr std::size_t kTakenBytes = std::size_t{16} << 20U;

struct ErrorRead {
  int code = 0;
  struct Data {
    std::optional<std::string> origin;
    std::optional<std::string> delivered;
  };
  std::optional<Data> data;
};

namespace {

// Of the error of a call: whether it says that nobody has got it. A provider's own has no origin, whatever else it
// says, and a method is not known where nobody provides it: where somebody does, that is his answer.
bool is_undelivered(std::string_view error_json, bool is_provided) {
  const auto read = from_json<ErrorRead>(error_json);
  if (!read) return false;
  if (read->code == static_cast<int>(ErrorCode::method_not_found)) return !is_provided;
  return read->data && read->data->origin && read->data->delivered == "no";
}

}  // namespace

/// The jobs of one method.
class WorkQueues::Queue final : private Timer {
 public:
  Queue(WorkQueues& queues, std::string method) : queues_(&queues), method_(std::move(method)) {}
  Queue(Queue&&) = delete;
  ~Queue() { queues_->context_->loop.stop(*this); }

  /// Looks for jobs again in so much time, or before.
  void look_in(nanoseconds time) {
    Scheduler* const scheduler = queues_->context_->loop.scheduler;
    if (scheduler == nullptr || scheduler->now() + time >= looks_at_) return;
    scheduler->stop(*this);
    scheduler->start(*this, time);
    looks_at_ = scheduler->now() + time;
  }

  [[nodiscard]] bool is_idle() const noexcept { return running == 0 && !taking && unsaved.empty(); }

  std::size_t running = 0;
  std::vector<std::pair<RunningJob, durable::JobOutcome>> unsaved;  ///< what has become of jobs, and is not safe
  bool taking = false;
  bool again = false;  ///< somebody has asked meanwhile

 private:
  void expired() override {
    looks_at_ = kNoDeadline;
    const std::string method = method_;
    for (auto& [job, outcome] : std::exchange(unsaved, {})) queues_->save(std::move(job), std::move(outcome));
    queues_->pump(method);
  }

  WorkQueues* queues_;
  const std::string method_;
  nanoseconds looks_at_ = kNoDeadline;
};

/// The peer that jobs are calls of. The principal has every grant: whoever has pushed a job had that for it. Another
/// broker of a cluster does not know it, so that its calls stay here.
class WorkQueues::JobCaller final : private rpc::MessageSink {
 public:
  explicit JobCaller(WorkQueues& queues)
      : queues_(&queues),
        limits_(queues.context_->limits),
        dispatcher_(queues.context_->own, *this, limits_, queues.context_->loop) {
    principal_.name = "queues of the broker";
    principal_.call.emplace_back(">");
  }
  JobCaller(JobCaller&&) = delete;
  ~JobCaller() = default;

  void call(const Job& job) {
    if (queues_->context_->loop.services.authority != nullptr) dispatcher_.identify(&principal_, {});
    // A job has its own time, which may be longer than that of a call that somebody waits for.
    limits_ = queues_->context_->limits;
    limits_.call_timeout_ms = job.timeout_ms;
    static_cast<Peer&>(*dispatcher_.join_broker()).calls_here = true;
    const Digits id{job.id};
    rpc::invoke(dispatcher_, {.method = job.method, .id = id.view(), .timeout_ms = job.timeout_ms}, job.params);
  }

 private:
  Buffer& open_message() override { return text_; }
  void close_message() override {
    Buffer text;
    std::swap(text, text_);
    Received message;
    static_cast<void>(read_message(text.padded(), queues_->context_->limits, true, message));
    std::uint64_t id = 0;
    const std::string_view digits = message.id();
    for (const char c : digits) id = 10 * id + static_cast<std::uint64_t>(c - '0');
    if (message.kind == MessageKind::response) queues_->answered(id, message);
  }
  void discard_message() noexcept override { text_.release(); }

  WorkQueues* queues_;
  Buffer text_;
  Principal principal_;
  Limits limits_;
  rpc::Dispatcher dispatcher_;
};

WorkQueues::WorkQueues(BrokerContext& context, DurableTopics& topics, durable::Store* store)
    : context_(&context),
      topics_(&topics),
      store_(store),
      push_(untyped_method<[](WorkQueues& own, Call& call) { own.push(call); }>("rpc.queue.push", *this)),
      result_(untyped_method<[](WorkQueues& own, Call& call) { own.result(call); }>("rpc.queue.result", *this)),
      list_(untyped_method<[](WorkQueues& own, Call& call) { own.list(call); }>("rpc.queue.ls", *this)),
      peek_(untyped_method<[](WorkQueues& own, Call& call) { own.peek(call); }>("rpc.queue.peek", *this)),
      retry_(untyped_method<[](WorkQueues& own, Call& call) { own.retry(call); }>("rpc.queue.retry", *this)),
      drop_(untyped_method<[](WorkQueues& own, Call& call) { own.drop(call); }>("rpc.queue.drop", *this)) {
  if (store_ != nullptr) open(*store_);
}

void WorkQueues::open(durable::Store& store) {
  store_ = &store;
  for (const std::string& method : store.waiting_methods()) queue_of(method).look_in(nanoseconds{0});
  store.on_jobs(
      [this](const std::set<std::string>& methods, bool all) { if_memory_allows([&] { jobs_came(methods, all); }); });
}

WorkQueues::Queue& WorkQueues::queue_of(const std::string& method) {
  auto& queue = queues_[method];
  if (queue == nullptr) queue = std::make_unique<Queue>(*this, method);
  return *queue;
}

// Of the others nothing need be known until somebody says that there are jobs.
void WorkQueues::jobs_came(const std::set<std::string>& methods, bool all) {
  if (all)
    std::erase_if(queues_, [&](const auto& one) { return one.second->is_idle() && !methods.contains(one.first); });
  for (const std::string& method : methods) {
    queue_of(method);
    pump(method);
  }
}

WorkQueues::~WorkQueues() = default;

void WorkQueues::go_on() {
  draining_ = false;
  provided(">");
}

bool WorkQueues::at_work() const noexcept {
  return !running_.empty() || std::ranges::any_of(queues_, [](const auto& one) { return one.second->taking; });
}

void WorkQueues::stop() noexcept {
  draining_ = true;
  caller_.reset();
  queues_.clear();
}

const Method* WorkQueues::find(std::string_view name) const noexcept {
  if (!name.starts_with("rpc.queue.")) return nullptr;
  for (const Method* const own : {&push_, &result_, &list_, &peek_, &retry_, &drop_}) {
    if (own->name() == name) return own;
  }
  return nullptr;
}

durable::Store& WorkQueues::require_store() const {
  if (store_ == nullptr) throw needs_store();
  return *store_;
}

// ---- calling ----

// How many jobs of a method may be called at once, 0 where no client of this broker provides it. What is beyond what
// its providers take at once waits for them as any call does.
std::size_t WorkQueues::window_of(const std::string& method) const {
  if (context_->own.find(method) != nullptr) return kWindow;
  const Route* const route = context_->methods.find(method);
  if (route == nullptr || route->description.subscription || route->description.unsubscribes) return 0;
  std::size_t window = 0;
  for (const auto& provider : route->providers()) {
    if (!provider->ended && !provider->at_node) window += std::min<std::size_t>(provider->options.concurrency, kWindow);
  }
  return std::min(window, kWindowMax);
}

void WorkQueues::provided(const std::string& name) {
  if (!name.ends_with('>')) return pump(name);
  const std::string prefix = name.substr(0, name.size() - 1);
  std::vector<std::string> methods;
  for (auto at = queues_.lower_bound(prefix); at != queues_.end() && at->first.starts_with(prefix); ++at)
    methods.push_back(at->first);
  for (const std::string& method : methods) pump(method);
}

void WorkQueues::pump(const std::string& method) {
  const auto found = queues_.find(method);
  if (draining_ || found == queues_.end()) return;
  Queue& queue = *found->second;
  const std::size_t window = window_of(method);
  if (queue.running < window) take(method, queue, window - queue.running);
}

// What nobody provides is no queue any more once no job is left, which the store alone knows.
void WorkQueues::free_if_empty(const std::string& method) {
  const auto found = queues_.find(method);
  if (draining_ || found == queues_.end()) return;
  Queue& queue = *found->second;
  if (queue.running == 0 && !queue.taking && window_of(method) == 0) take(method, queue, 0);
}

void WorkQueues::take(const std::string& method, Queue& queue, std::size_t count) {
  if (std::exchange(queue.taking, true)) {
    queue.again = true;
    return;
  }
  store_->take({.method = method, .count = count, .bytes = kTakenBytes},
               [this, method, count](const durable::Outcome<durable::Taken>& outcome) {
                 if_memory_allows([&] { taken(method, outcome, count); });
               });
}

void WorkQueues::taken(const std::string& method, const durable::Outcome<durable::Taken>& outcome, std::size_t asked) {
  const auto found = queues_.find(method);
  if (found == queues_.end()) return;
  Queue& queue = *found->second;
  queue.taking = false;
  if (!outcome) return queue.look_in(kFirstJobPause);
  bool ran = false;
  for (const Job& job : outcome->jobs) {
    // Another process has had the store meanwhile, and left it: what is at work here is not begun once more.
    if (running_.contains(job.id)) {
      ran = true;
      continue;
    }
    ++queue.running;
    begin(job);
  }
  if (ran || (std::exchange(queue.again, false) && (asked == 0 || outcome->jobs.size() < asked))) return pump(method);
  if (outcome->next_ms) {
    if (*outcome->next_ms != 0) queue.look_in(milliseconds{*outcome->next_ms});
  } else if (queue.running == 0) {
    queues_.erase(found);  // until somebody pushes
  }
}

void WorkQueues::begin(const Job& job) {
  running_[job.id] = {.method = job.method, .deliveries = job.deliveries, .max_deliver = job.max_deliver};
  if (draining_) return finish(job.id, {.id = job.id, .state = Job::State::waiting, .untried = true});
  try {
    if (caller_ == nullptr) caller_ = std::make_unique<JobCaller>(*this);
    caller_->call(job);
  } catch (const std::exception&) {  // no memory
    finish(job.id, {.id = job.id, .state = Job::State::waiting, .untried = true});
  }
}

void WorkQueues::answered(std::uint64_t id, const Received& message) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  const RunningJob& job = found->second;
  durable::JobOutcome outcome{.id = id};
  if (message.has(Member::result)) {
    outcome.result = message[Member::result];
    return finish(id, std::move(outcome));
  }
  outcome.result = message.has(Member::error) ? std::string{message[Member::error]}
                                              : R"({"code":-32603,"message":"Internal error"})";
  outcome.untried = is_undelivered(outcome.result, window_of(job.method) != 0);
  outcome.result = kept_error(std::move(outcome.result), "The provider's");
  if (!outcome.untried && job.max_deliver != 0 && job.deliveries >= job.max_deliver) {
    outcome.state = Job::State::dead;
  } else {
    outcome.state = Job::State::waiting;
    const milliseconds pause =
        outcome.untried ? kUntriedPause : pause_after(job.deliveries, kFirstJobPause, kLongestPause);
    outcome.delay_ms = static_cast<std::uint64_t>(pause.count());
  }
  finish(id, std::move(outcome));
}

void WorkQueues::finish(std::uint64_t id, durable::JobOutcome outcome) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;  // it was answered before its call has failed
  RunningJob job = std::move(found->second);
  running_.erase(found);
  save(std::move(job), std::move(outcome));
}

void WorkQueues::save(RunningJob job, durable::JobOutcome outcome) {
  store_->finish(outcome, [this, job = std::move(job), outcome](const durable::Outcome<durable::Done>& done) {
    if_memory_allows([&] { finished(job, outcome, done); });
  });
}

// Where the disk fails, the job is running as far as the store knows, and counts as such here, until what has become
// of it is safe.
void WorkQueues::finished(const RunningJob& job, const durable::JobOutcome& outcome,
                          const durable::Outcome<durable::Done>& done) {
  const auto found = queues_.find(job.method);
  if (!done && done.error().kind == durable::Failure::Kind::broken && found != queues_.end()) {
    found->second->unsaved.emplace_back(job, outcome);
    return found->second->look_in(kUnsavedPause);
  }
  if (found != queues_.end() && found->second->running != 0) --found->second->running;
  if (done && outcome.state != Job::State::waiting) {
    const bool has_result = outcome.state == Job::State::done;
    std::string topic = (has_result ? "queue.done." : "queue.dead.") + job.method;
    std::string params =
        R"({"id":)" + std::to_string(outcome.id) + R"(,"deliveries":)" + std::to_string(job.deliveries);
    const std::string_view name = has_result ? R"(,"result":)" : R"(,"error":)";
    if (topics_->fits_message(topic, outcome.result)) params.append(name).append(outcome.result);
    topics_->publish_own(std::move(topic), params + "}");
  }
  pump(job.method);
  free_if_empty(job.method);
}

}  // namespace wirecall::broker
