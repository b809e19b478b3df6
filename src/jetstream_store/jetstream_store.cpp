// See jetstream_store.hpp.
#include "jetstream_store/jetstream_store.hpp"

#include <algorithm>
#include <chrono>

#include "base/dotted_name.hpp"
#include "cluster/subjects.hpp"
#include "jetstream_store/jetstream_answers.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

using durable::ConsumerState;
using durable::Failure;
using durable::Outcome;
using durable::Then;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kRetry{1000};
// nats-server 2.9 deletes the files of a stream after it has said so: one of that name that is made at once may lose
// what it is given.
constexpr milliseconds kAnew{250};
// So much longer than a broker JetStream waits for an acknowledgement: only where the broker has gone it is the first.
constexpr milliseconds kAckGrace{5000};
// Before a dead letter that could not be kept is tried once more.
constexpr milliseconds kLetterPause{1000};
// Before a lease is asked for once more.
constexpr milliseconds kLeasePause{100};
const Failure kMoved{.kind = Failure::Kind::moved, .why = "another process has taken over"};

namespace {

// What a consumer's description tells of it that JetStream has no place for.
struct Described {
  std::string topic;
  std::uint32_t ack_wait_ms = 0;
  std::uint32_t max_deliver = 0;
  std::uint32_t max_in_flight = 0;
  std::string principal;
};

// A pattern of topics as one of subjects.
std::string subjects_of(std::string_view pattern) {
  std::string subjects;
  while (!pattern.empty()) {
    const std::string_view word = take_word(pattern);
    if (!subjects.empty()) subjects += '.';
    if (word == "*" || word == ">") {
      subjects += word;
    } else {
      subjects += cluster::subject_of_name(word);
    }
  }
  return subjects;
}

// Whether some topic matches both.
bool meet(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && !b.empty()) {
    const std::string_view one = take_word(a);
    const std::string_view other = take_word(b);
    if (one == ">" || other == ">") return true;
    if (one != other && one != "*" && other != "*") return false;
  }
  return a.empty() && b.empty();
}

}  // namespace

// ---- the streams ----

JetStreamStore::JetStreamStore(JetStreamStoreOptions options, std::unique_ptr<net::HeaderBus> bus, std::string inbox,
                               Scheduler& scheduler, const LogSink& log)
    : options_(std::move(options)),
      scheduler_(&scheduler),
      log_(&log),
      letter_timer_([this] {
        for (DeadLetter& one : std::exchange(letters_, {})) {
          jetstream_.send(one.reply, "+WPI");
          bury(std::move(one));
        }
      }),
      retry_timer_([this] {
        for (const std::size_t at : std::set{missing_}) make_stream(at);
      }),
      accounts_(options_.accounts, jetstream_, scheduler),
      consumer_counts_(
          options_.consumers, [this](auto then) { list_consumers(std::move(then)); }, scheduler),
      jobs_(options_.realm, options_.jobs, jetstream_, scheduler),
      jetstream_(std::move(bus), std::move(inbox), scheduler) {
  for (const durable::TopicRule& rule : options_.rules) {
    const std::string token = rule.pattern.empty() ? "other" : token_of(rule.pattern);
    streams_.push_back({.name = "wirecall_" + options_.realm + "_events_" + token,
                        .prefix = "wc." + options_.realm + ".d." + token + '.',
                        .rule = rule});
    wanted_.push_back({streams_.back().name, configuration(streams_.back())});
    accounts_.add_stream(streams_.back().name, streams_.back().prefix);
  }
  for (WantedStream& stream : jobs_.streams()) wanted_.push_back(std::move(stream));
  wanted_.push_back(lease_stream());
  for (std::size_t at = 0; at != wanted_.size(); ++at) missing_.insert(at);
  why_missing_ = "NATS is not connected yet";
  jetstream_.on_connection([this](bool connected) { connection_changed(connected); });
  jetstream_.on_absence([this] { stream_absent(); });
}

// What it holds others get at once.
JetStreamStore::~JetStreamStore() {
  for (const auto& [name, opened] : opened_) {
    for (const auto& [seq, reply] : opened.held) give_back(reply, 0);
  }
  jobs_.leave();
  scheduler_->stop(letter_timer_);
  scheduler_->stop(retry_timer_);
  scheduler_->stop(answer_timer_);
  scheduler_->stop(lease_timer_);
}

void JetStreamStore::leave() {
  left_ = true;
  for (auto& [name, opened] : opened_) {
    for (const auto& [seq, reply] : std::exchange(opened.held, {})) give_back(reply, 0);
  }
  jobs_.leave();
}

// Each time anew: who has lost its memory meanwhile is told again.
void JetStreamStore::connection_changed(bool connected) {
  scheduler_->stop(retry_timer_);
  if (!connected) {
    why_missing_ = "the connection to NATS is lost";
    for (auto& [name, opened] : opened_) opened.held.clear();  // they come again
    jobs_.lost();
    return;
  }
  for (std::size_t at = 0; at != wanted_.size(); ++at) {
    missing_.insert(at);
    make_stream(at);
  }
}

std::string JetStreamStore::configuration(const Stream& stream) const {
  const auto or_none = [](std::uint64_t limit) { return limit == 0 ? std::string{"-1"} : std::to_string(limit); };
  const durable::TopicRule& rule = stream.rule;
  std::uint64_t window = std::max<std::uint64_t>(options_.dedup_ms, 100);  // NATS refuses less
  if (rule.max_age_ms != 0) window = std::min(window, rule.max_age_ms);
  return R"("description":)" +
         to_json(rule.pattern.empty() ? "wirecall: durable topics that no rule names"
                                      : "wirecall: durable topics " + rule.pattern) +
         R"(,"subjects":[")" + stream.prefix + R"(>"],"retention":"limits","discard":"old","max_msgs":)" +
         or_none(rule.max_count) + R"(,"max_bytes":)" + or_none(rule.max_bytes) + R"(,"max_age":)" +
         nanoseconds_of(rule.max_age_ms) + R"(,"duplicate_window":)" + nanoseconds_of(window);
}

void JetStreamStore::make_stream(std::size_t at) {
  const auto there = [this, at](const Outcome<Value>& outcome) {
    if (!outcome) return stream_failed(at, outcome.error());
    if (missing_.erase(at) == 0 || !missing_.empty()) return;
    (*log_)(LogLevel::info, "durable: JetStream is there: " + jetstream_.url());
    jobs_.begin();
  };
  const WantedStream& stream = wanted_[at];
  const std::string configuration = R"({"name":")" + stream.name + R"(","storage":"file","num_replicas":)" +
                                    std::to_string(options_.replicas) + ',' + stream.configuration + '}';
  jetstream_.request("$JS.API.STREAM.CREATE." + stream.name, configuration,
                     [this, at, there, configuration](const Outcome<Value>& outcome) {
                       // It may be there with other limits. What it cannot be made with it is not given later either.
                       if (outcome || outcome.error().kind != Failure::Kind::conflict) return there(outcome);
                       jetstream_.request("$JS.API.STREAM.UPDATE." + wanted_[at].name, configuration, there);
                     });
}

void JetStreamStore::stream_failed(std::size_t at, const Failure& failure) {
  const std::string why = wanted_[at].name + ": " + failure.why;
  if (why != std::exchange(why_missing_, why) && jetstream_.is_connected())
    (*log_)(LogLevel::error, "durable: JetStream has no room for durable topics and queues: " + why);
  scheduler_->stop(retry_timer_);
  if (jetstream_.is_connected()) scheduler_->start(retry_timer_, kRetry);
}

// Somebody has deleted it, or nats-server has lost what it had: they are made anew.
void JetStreamStore::stream_absent() {
  if (!missing_.empty() || !jetstream_.is_connected()) return;
  why_missing_ = "JetStream has lost a stream, which is made anew";
  (*log_)(LogLevel::error, "durable: " + why_missing_);
  jobs_.lost();
  for (std::size_t at = 0; at != wanted_.size(); ++at) missing_.insert(at);
  scheduler_->stop(retry_timer_);
  scheduler_->start(retry_timer_, kAnew);
}

const JetStreamStore::Stream& JetStreamStore::stream_of_topic(std::string_view topic) const noexcept {
  const auto found = std::ranges::find_if(
      streams_, [topic](const Stream& one) { return one.rule.pattern.empty() || matches(one.rule.pattern, topic); });
  return *found;
}

const JetStreamStore::Stream* JetStreamStore::stream_of_pattern(std::string_view pattern) const noexcept {
  for (const Stream& stream : streams_) {
    if (stream.rule.pattern.empty() || covers(stream.rule.pattern, pattern)) return &stream;
    if (meet(stream.rule.pattern, pattern)) return nullptr;
  }
  return nullptr;
}

// ---- what cannot be ----

Failure JetStreamStore::why_not() const {
  if (left_) return kMoved;
  if (jetstream_.is_connected()) return {.why = why_missing_};
  const std::string said = jetstream_.failure();
  return {.why = said.empty() ? why_missing_ : "NATS at " + jetstream_.url() + ": " + said};
}

void JetStreamStore::answer_later(std::move_only_function<void()> answer) {
  if (answers_.empty()) scheduler_->start(answer_timer_, nanoseconds{0});
  answers_.push_back(std::move(answer));
}

template <class T>
void JetStreamStore::fail_later(Then<T> then, Failure failure) {
  if (!then) return;
  answer_later(
      [then = std::move(then), failure = std::move(failure)]() mutable { then(std::unexpected(std::move(failure))); });
}

void JetStreamStore::answer_now() {
  for (auto& one : std::exchange(answers_, {})) one();
}

template <class T>
bool JetStreamStore::require_usable(Then<T>& then) {
  if (is_usable()) return true;
  fail_later(std::move(then), why_not());
  return false;
}

static Failure many_streams(std::string_view pattern) {
  return {.kind = Failure::Kind::refused,
          .why = "the topics of " + std::string{pattern} +
                 " are in several streams, one for each pattern of durable.topics: name topics of one of them"};
}

// ---- events ----

void JetStreamStore::append(durable::NewEvent event, Then<durable::Appended> then) {
  if (!require_usable(then)) return;
  constexpr std::size_t kHeadersBytesMax = 2048;
  constexpr std::size_t kEventBytes = 64;
  const Stream& stream = stream_of_topic(event.topic);
  const std::size_t bytes = event.topic.size() + event.params.size() + kEventBytes;
  if (stream.rule.max_bytes != 0 && bytes > stream.rule.max_bytes) {
    return fail_later(
        std::move(then),
        {.kind = Failure::Kind::full, .why = "the event is larger than its topic may be", .limit = "max_bytes"});
  }
  if (event.params.size() + kHeadersBytesMax > jetstream_.payload_bytes_max()) {
    return fail_later(
        std::move(then),
        {.kind = Failure::Kind::full, .why = "the event is longer than NATS takes at once", .limit = "max_payload"});
  }
  const std::string subject = stream.prefix + token_of(event.principal) + '.' + std::to_string(size_class(bytes)) +
                              '.' + cluster::subject_of_name(event.topic);
  const std::string principal = event.principal;
  accounts_.require_room(principal, size_class(bytes),
                         [this, subject, event = std::move(event),
                          then = std::move(then)](const Outcome<durable::Done>& has_room) mutable {
                           if (has_room) return keep(event, subject, std::move(then));
                           if (then) then(std::unexpected(has_room.error()));
                         });
}

void JetStreamStore::keep(const durable::NewEvent& event, const std::string& subject, Then<durable::Appended> then) {
  JetStream::Headers headers;
  // JetStream knows ids of streams, and not of topics.
  if (!event.msg_id.empty() && options_.dedup_ms != 0)
    headers.push_back({"Nats-Msg-Id", token_of(event.topic + ' ' + event.msg_id)});
  jetstream_.request(
      subject, event.params,
      [then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!then) return;
        if (!outcome) return then(std::unexpected(outcome.error()));
        const Value* const duplicate = find(*outcome, "duplicate");
        then(durable::Appended{.seq = number(find(*outcome, "seq")),
                               .duplicate = duplicate != nullptr && duplicate->is_bool() && duplicate->as_bool()});
      },
      headers);
}

// Behind its stream's words come a principal and a size, whichever they are.
std::string JetStreamStore::filter_of(const Stream& stream, std::string_view pattern) {
  return stream.prefix + "*.*." + subjects_of(pattern);
}

std::string JetStreamStore::topic_of(const Stream& stream, const std::string& subject) {
  std::string_view rest = std::string_view{subject}.substr(std::min(stream.prefix.size(), subject.size()));
  for (int i = 0; i != 2; ++i) static_cast<void>(take_word(rest));
  return cluster::name_of_subject(rest).value_or(subject);
}

// What others have published there is passed over: nobody is sent what is no JSON.
bool JetStreamStore::is_event(std::string_view subject, std::string_view payload) {
  if (are_params(payload)) return true;
  if (!std::exchange(told_of_others_, true)) {
    (*log_)(LogLevel::warning,
            "durable: others publish to the streams of this realm what is no event, which is passed over: " +
                std::string{subject});
  }
  return false;
}

/// Events that are read one by one.
struct JetStreamStore::Reading {
  durable::Fetch fetch;
  const Stream* stream;
  std::string subjects;
  Then<durable::Fetched> then;
  durable::Fetched fetched;
  std::size_t bytes = 0;
};

void JetStreamStore::fetch(durable::Fetch fetch, Then<durable::Fetched> then) {
  if (!require_usable(then)) return;
  if (!fetch.consumer.empty()) {
    const auto opened = opened_.find(fetch.consumer);
    if (opened != opened_.end() && !opened->second.pulls) return pull(fetch, opened->second, std::move(then));
    return fail_later(std::move(then), {.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"});
  }
  const Stream* const stream = stream_of_pattern(fetch.pattern);
  if (stream == nullptr) return fail_later(std::move(then), many_streams(fetch.pattern));
  auto reading = std::make_shared<Reading>(Reading{.fetch = std::move(fetch),
                                                   .stream = stream,
                                                   .subjects = {},
                                                   .then = std::move(then),
                                                   .fetched = {.events = {}, .scanned = 0}});
  reading->subjects = filter_of(*stream, reading->fetch.pattern);
  reading->fetched.scanned = reading->fetch.after;
  read_next(std::move(reading));
}

void JetStreamStore::read_next(std::shared_ptr<Reading> reading) {
  const std::string asked = R"({"seq":)" + std::to_string(reading->fetched.scanned + 1) + R"(,"next_by_subj":)" +
                            to_json(reading->subjects) + "}";
  const std::string subject = "$JS.API.STREAM.MSG.GET." + reading->stream->name;
  jetstream_.request(subject, asked, [this, reading = std::move(reading)](const Outcome<Value>& outcome) mutable {
    durable::Fetched& fetched = reading->fetched;
    const bool is_end = !outcome && outcome.error().kind == Failure::Kind::unknown;
    if (!outcome && !is_end) return reading->then(std::unexpected(outcome.error()));
    if (is_end) return reading->then(std::move(fetched));
    StoredMessage message = stored_message(*outcome);
    if (message.seq == 0) return reading->then(std::unexpected(Failure{.why = "JetStream's answer is not understood"}));
    if (!is_event(message.subject, message.data)) {
      fetched.scanned = message.seq;
      return read_next(std::move(reading));
    }
    durable::Event event{.seq = message.seq,
                         .at_ms = message.at_ms,
                         .topic = topic_of(*reading->stream, message.subject),
                         .params = std::move(message.data)};
    if (!fetched.events.empty() && reading->bytes + event.params.size() > reading->fetch.bytes)
      return reading->then(std::move(fetched));
    reading->bytes += event.params.size();
    fetched.scanned = event.seq;
    fetched.events.push_back(std::move(event));
    if (fetched.events.size() == reading->fetch.count) return reading->then(std::move(fetched));
    read_next(std::move(reading));
  });
}

void JetStreamStore::ask_all(const std::function<std::string(const Stream&)>& subject,
                             Then<std::vector<std::optional<Value>>> then) {
  std::vector<std::pair<std::string, std::string>> asked;
  for (const Stream& stream : streams_) asked.emplace_back(subject(stream), std::string{});
  jetstream_.request_all(std::move(asked), std::move(then));
}

void JetStreamStore::list_topics(std::string /*asker*/, Then<std::vector<durable::TopicCounts>> then) {
  if (!require_usable(then)) return;
  ask_all([](const Stream& stream) { return "$JS.API.STREAM.INFO." + stream.name; },
          [this, then = std::move(then)](const Outcome<std::vector<std::optional<Value>>>& outcome) mutable {
            if (!outcome) return then(std::unexpected(outcome.error()));
            std::vector<durable::TopicCounts> counts;
            for (std::size_t at = 0; at != streams_.size(); ++at) {
              durable::TopicCounts one{.pattern = streams_[at].rule.pattern};
              if (const auto& info = (*outcome)[at]) {
                one.count = number(find(*info, "state", "messages"));
                one.bytes = number(find(*info, "state", "bytes"));
                one.last_seq = number(find(*info, "state", "last_seq"));
              }
              counts.push_back(std::move(one));
            }
            then(std::move(counts));
          });
}

// ---- consumers ----

std::optional<ConsumerState> JetStreamStore::state_of(const Stream& stream, const Value& info) const {
  const auto described = from_json<Described>(text(find(info, "config", "description")));
  if (!described || text(find(info, "config", "filter_subject")) != filter_of(stream, described->topic))
    return std::nullopt;
  return ConsumerState{.settings = {.name = text(find(info, "name")),
                                    .pattern = described->topic,
                                    .ack_wait_ms = described->ack_wait_ms,
                                    .max_deliver = described->max_deliver,
                                    .max_in_flight = described->max_in_flight,
                                    .principal = described->principal},
                       .floor = number(find(info, "ack_floor", "stream_seq")),
                       .tried = {},
                       .in_flight = number(find(info, "num_ack_pending"))};
}

void JetStreamStore::locate(const std::string& name, Then<std::optional<Located>> then) {
  ask_all([name](const Stream& stream) { return "$JS.API.CONSUMER.INFO." + stream.name + '.' + name; },
          [then = std::move(then)](const Outcome<std::vector<std::optional<Value>>>& outcome) mutable {
            if (!outcome) return then(std::unexpected(outcome.error()));
            std::size_t at = 0;
            for (const std::optional<Value>& info : *outcome) {
              if (info) return then(Located{.stream = at, .info = *info});
              ++at;
            }
            then(std::optional<Located>{});
          });
}

void JetStreamStore::open_consumer(durable::ConsumerSettings settings, Then<ConsumerState> then) {
  if (!require_usable(then)) return;
  const Stream* const stream = stream_of_pattern(settings.pattern);
  if (stream == nullptr) return fail_later(std::move(then), many_streams(settings.pattern));
  const auto at = static_cast<std::size_t>(stream - streams_.data());
  const std::string name = settings.name;
  locate(name, [this, at, settings = std::move(settings),
                then = std::move(then)](const Outcome<std::optional<Located>>& outcome) mutable {
    if (!outcome) return then(std::unexpected(outcome.error()));
    if (!*outcome) {
      const std::string principal = settings.principal;
      return consumer_counts_.require_room(principal,
                                           [this, at, settings = std::move(settings),
                                            then = std::move(then)](const Outcome<durable::Done>& has_room) mutable {
                                             if (!has_room) return then(std::unexpected(has_room.error()));
                                             make_consumer(at, settings, nullptr, std::move(then));
                                           });
    }
    const std::optional<ConsumerState> known = state_of(streams_[(*outcome)->stream], (*outcome)->info);
    if (!known || known->settings.pattern != settings.pattern) {
      return then(std::unexpected(
          Failure{.kind = Failure::Kind::conflict,
                  .why = "the consumer of that name has another topic: forget it first, or use another name"}));
    }
    settings.principal = known->settings.principal;
    make_consumer((*outcome)->stream, settings, find((*outcome)->info, "config"), std::move(then));
  });
}

// JetStream refuses another beginning than that of one that is there, so that is given back as it came.
void JetStreamStore::make_consumer(std::size_t at, const durable::ConsumerSettings& settings, const Value* before,
                                   Then<ConsumerState> then) {
  const Stream& stream = streams_[at];
  std::string begin = R"("deliver_policy":"all")";
  if (before != nullptr) {
    begin = R"("deliver_policy":)" + to_json(text(find(*before, "deliver_policy")));
    if (const std::uint64_t seq = number(find(*before, "opt_start_seq")); seq != 0)
      begin += R"(,"opt_start_seq":)" + std::to_string(seq);
  } else if (settings.after == durable::kOnlyNew) {
    begin = R"("deliver_policy":"new")";
  } else if (settings.after != 0) {
    begin = R"("deliver_policy":"by_start_sequence","opt_start_seq":)" + std::to_string(settings.after + 1);
  }
  const Described described{.topic = settings.pattern,
                            .ack_wait_ms = settings.ack_wait_ms,
                            .max_deliver = settings.max_deliver,
                            .max_in_flight = settings.max_in_flight,
                            .principal = settings.principal};
  const std::string asked = R"({"stream_name":")" + stream.name + R"(","config":{"durable_name":")" + settings.name +
                            R"(","description":)" + to_json(to_json(described)) + R"(,"filter_subject":)" +
                            to_json(filter_of(stream, settings.pattern)) +
                            R"(,"ack_policy":"explicit","max_deliver":-1,"ack_wait":)" +
                            nanoseconds_of(settings.ack_wait_ms + static_cast<std::uint64_t>(kAckGrace.count())) +
                            R"(,"max_ack_pending":)" + std::to_string(settings.max_in_flight) + ',' + begin + "}}";
  jetstream_.request(
      "$JS.API.CONSUMER.DURABLE.CREATE." + stream.name + '.' + settings.name, asked,
      [this, at, settings, then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        const std::uint64_t floor = number(find(*outcome, "ack_floor", "stream_seq"));
        Opened& opened = opened_[settings.name];
        opened.stream = at;
        opened.settings = settings;
        opened.settings.after = floor;
        then(ConsumerState{
            .settings = settings, .floor = floor, .tried = {}, .in_flight = number(find(*outcome, "num_ack_pending"))});
      });
}

void JetStreamStore::pull(const durable::Fetch& fetch, Opened& opened, Then<durable::Fetched> then) {
  const Stream& stream = streams_[opened.stream];
  opened.pulls = true;
  jetstream_.pull(
      stream.name, fetch.consumer, fetch.count, fetch.bytes, JetStream::Wait::yes,
      [this, name = fetch.consumer, then = std::move(then)](Outcome<std::vector<PulledMessage>> outcome) mutable {
        const auto found = opened_.find(name);
        if (found == opened_.end()) {
          return then(
              std::unexpected(Failure{.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"}));
        }
        found->second.pulls = false;
        if (!outcome) {
          if (is_usable()) look_after(name);
          return then(std::unexpected(outcome.error()));
        }
        if (left_) {
          for (const PulledMessage& message : *outcome) give_back(message.reply, 0);
          return then(std::unexpected(kMoved));
        }
        const Stream& from = streams_[found->second.stream];
        durable::Fetched fetched;
        for (PulledMessage& message : *outcome) {
          if (!is_event(message.subject, message.payload)) {
            jetstream_.send(message.reply, "+TERM");
            continue;
          }
          const Delivery delivery = delivery_of(message.reply);
          found->second.held[delivery.seq] = std::move(message.reply);
          fetched.events.push_back({.seq = delivery.seq,
                                    .at_ms = delivery.at_ms,
                                    .topic = topic_of(from, message.subject),
                                    .params = std::move(message.payload),
                                    .deliveries = delivery.deliveries});
        }
        then(std::move(fetched));
      });
}

// One that somebody has deleted though it was joined is made anew, from where it was when it was joined: in a stream
// that was made anew, from the beginning.
void JetStreamStore::look_after(const std::string& name) {
  const auto opened = opened_.find(name);
  const std::string& stream = streams_[opened->second.stream].name;
  jetstream_.request_all({{"$JS.API.CONSUMER.INFO." + stream + '.' + name, {}}, {"$JS.API.STREAM.INFO." + stream, {}}},
                         [this, name](const Outcome<std::vector<std::optional<Value>>>& outcome) {
                           const auto found = opened_.find(name);
                           if (!outcome || (*outcome)[0] || !(*outcome)[1] || found == opened_.end() || !is_usable())
                             return;
                           (*log_)(LogLevel::warning,
                                   "durable: JetStream has lost the consumer " + name + ", which is made anew");
                           durable::ConsumerSettings settings = found->second.settings;
                           if (number(find(*(*outcome)[1], "state", "last_seq")) < settings.after) settings.after = 0;
                           found->second.held.clear();
                           make_consumer(found->second.stream, settings, nullptr, [](const Outcome<ConsumerState>&) {});
                         });
}

void JetStreamStore::give_back(const std::string& reply, std::uint64_t pause_ms) {
  if (pause_ms == 0) return jetstream_.send(reply, "-NAK");
  jetstream_.send(reply, R"(-NAK {"delay":)" + nanoseconds_of(pause_ms) + "}");
}

// A result that is late is one all the same: JetStream knows by its number which event that is.
void JetStreamStore::progress(durable::Progress progress, Then<durable::Appended> then) {
  if (!require_usable(then)) return;
  const auto opened = opened_.find(progress.consumer);
  if (opened == opened_.end() || !progress.tried) {
    return fail_later(std::move(then), {.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"});
  }
  const durable::Tried tried = *progress.tried;
  const std::string& stream = streams_[opened->second.stream].name;
  std::string reply = "$JS.ACK." + stream + '.' + progress.consumer + ".1." + std::to_string(tried.seq) + ".1.0.0";
  if (const auto held = opened->second.held.extract(tried.seq)) reply = held.mapped();
  if (!progress.dead) {
    if (tried.acknowledged) {
      jetstream_.send(reply, "+ACK");
    } else {
      give_back(reply, progress.pause_ms);
    }
    if (then) answer_later([then = std::move(then)]() mutable { then(durable::Appended{}); });
    return;
  }
  durable::NewEvent dead = *std::move(progress.dead);
  // Where this is done twice, it is kept once.
  dead.msg_id = stream + ' ' + std::to_string(tried.seq);
  bury({.event = std::move(dead), .reply = std::move(reply), .then = std::move(then)});
}

// One that its principal has no room for, or that could not be kept, is tried again, and the event is ours meanwhile:
// it is sent to nobody, and its letter says what it is dead of. One that is too large is given up without a trace.
void JetStreamStore::bury(DeadLetter letter) {
  durable::NewEvent event = letter.event;
  append(std::move(event),
         [this, alive = std::weak_ptr{alive_}, letter = std::move(letter)](Outcome<durable::Appended> outcome) mutable {
           if (alive.expired()) return;
           using Kind = Failure::Kind;
           const bool too_large =
               !outcome && outcome.error().kind == Kind::full && !outcome.error().limit.starts_with("durable.");
           if (outcome || too_large) {
             jetstream_.send(letter.reply, "+TERM");
           } else if (outcome.error().kind != Kind::moved) {
             letters_.push_back(std::move(letter));
             if (letters_.size() == 1) scheduler_->start(letter_timer_, kLetterPause);
             return;
           }
           if (letter.then) letter.then(std::move(outcome));
         });
}

void JetStreamStore::forget_consumer(std::string name, Then<durable::Done> then) {
  if (!require_usable(then)) return;
  locate(name, [this, name, then = std::move(then)](const Outcome<std::optional<Located>>& outcome) mutable {
    if (!outcome) return then(std::unexpected(outcome.error()));
    if (!*outcome) {
      return then(std::unexpected(Failure{.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"}));
    }
    const auto opened = opened_.find(name);
    const std::uint64_t own = opened != opened_.end() && opened->second.pulls ? 1 : 0;
    if (number(find((*outcome)->info, "num_waiting")) > own) {
      return then(std::unexpected(
          Failure{.kind = Failure::Kind::conflict,
                  .why = "clients of another node have joined the consumer: it can be forgotten once they have left"}));
    }
    jetstream_.request("$JS.API.CONSUMER.DELETE." + streams_[(*outcome)->stream].name + '.' + name, {},
                       [this, name, then = std::move(then)](const Outcome<Value>& deleted) mutable {
                         if (!deleted) return then(std::unexpected(deleted.error()));
                         opened_.erase(name);
                         then(durable::Done{});
                       });
  });
}

void JetStreamStore::list_consumers(Then<std::vector<ConsumerState>> then) {
  if (!require_usable(then)) return;
  list_consumers_from(0, 0, std::make_shared<std::vector<ConsumerState>>(), std::move(then));
}

// Some hundred at a time, stream by stream.
void JetStreamStore::list_consumers_from(std::size_t at, std::size_t offset,
                                         std::shared_ptr<std::vector<ConsumerState>> found,
                                         Then<std::vector<ConsumerState>> then) {
  if (at == streams_.size()) return then(std::move(*found));
  jetstream_.request(
      "$JS.API.CONSUMER.LIST." + streams_[at].name, R"({"offset":)" + std::to_string(offset) + "}",
      [this, at, offset, found, then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        const Value* const consumers = find(*outcome, "consumers");
        const std::size_t count = consumers != nullptr && consumers->is_array() ? consumers->as_array().size() : 0;
        for (std::size_t i = 0; i != count; ++i) {
          if (auto state = state_of(streams_[at], consumers->as_array()[i])) found->push_back(*std::move(state));
        }
        const bool more = count != 0 && offset + count < number(find(*outcome, "total"));
        list_consumers_from(more ? at : at + 1, more ? offset + count : 0, std::move(found), std::move(then));
      });
}

// ---- jobs ----

void JetStreamStore::push(durable::NewJob job, Then<durable::Pushed> then) {
  if (!require_usable(then)) return;
  if (jobs_.fits(job)) return jobs_.push(std::move(job), std::move(then));
  fail_later(std::move(then),
             {.kind = Failure::Kind::full, .why = "the job is longer than NATS takes at once", .limit = "max_payload"});
}

void JetStreamStore::take(durable::Take take, Then<durable::Taken> then) {
  if (!require_usable(then)) return;
  if (take.count != 0) return jobs_.take(std::move(take), std::move(then));
  // What is asked is whether there are any.
  durable::Taken none{.jobs = {}, .next_ms = jobs_.waits(take.method) ? std::optional<std::uint64_t>{0} : std::nullopt};
  answer_later([then = std::move(then), none = std::move(none)]() mutable { then(std::move(none)); });
}

void JetStreamStore::finish(durable::JobOutcome outcome, Then<durable::Done> then) {
  if (!require_usable(then)) return;
  if (jobs_.runs(outcome.id)) return jobs_.finish(std::move(outcome), std::move(then));
  fail_later(std::move(then), {.kind = Failure::Kind::unknown, .why = "the job does not run here"});
}

void JetStreamStore::find_job(std::uint64_t id, std::string /*asker*/, Then<durable::Job> then) {
  if (require_usable(then)) jobs_.find_job(id, std::move(then));
}

void JetStreamStore::list_queues(std::string /*asker*/, Then<std::vector<durable::QueueCounts>> then) {
  if (require_usable(then)) jobs_.list_queues(std::move(then));
}

void JetStreamStore::peek(durable::Peek peek, Then<std::vector<durable::Job>> then) {
  if (require_usable(then)) jobs_.peek(std::move(peek), std::move(then));
}

void JetStreamStore::retry_job(std::uint64_t id, Then<durable::Done> then) {
  if (require_usable(then)) jobs_.retry_job(id, std::move(then));
}

void JetStreamStore::drop_job(std::uint64_t id, Then<durable::Done> then) {
  if (require_usable(then)) jobs_.drop_job(id, std::move(then));
}

// ---- leases ----

// A message that NATS forgets after the time of a lease, and its number: the last one of its subject tells whose it is.
WantedStream JetStreamStore::lease_stream() const {
  const std::uint64_t time = std::max<std::uint64_t>(options_.lease_ms, 100);  // NATS refuses less
  return {"wirecall_" + options_.realm + "_leases",
          R"("description":"wirecall: methods that want one provider","subjects":["wc.)" + options_.realm +
              R"(.d.leases.>"],"retention":"limits","discard":"old","max_msgs_per_subject":1,"max_msgs":-1,)"
              R"("max_bytes":-1,"max_age":)" +
              nanoseconds_of(time) + R"(,"duplicate_window":)" + nanoseconds_of(time)};
}

void JetStreamStore::lease(std::string name, std::uint64_t revision, Then<durable::Leased> then) {
  LeaseTries tries;
  if (revision != 0) tries = {.ended = 0, .reached = 0};
  ask_for_lease(name, revision, tries, std::move(then));
}

// One that has just ended elsewhere is free a moment later, and a broker that begins reaches NATS then.
void JetStreamStore::ask_for_lease(const std::string& name, std::uint64_t revision, LeaseTries tries,
                                   Then<durable::Leased> then) {
  if (!missing_.empty() || !jetstream_.is_connected()) {
    if (tries.reached == 0) return fail_later(std::move(then), why_not());
    --tries.reached;
    return ask_for_lease_later(name, tries, std::move(then));
  }
  jetstream_.request("wc." + options_.realm + ".d.leases." + cluster::subject_of_name(name), options_.node,
                     [this, name, tries, then = std::move(then)](const Outcome<Value>& outcome) mutable {
                       if (outcome)
                         return then(durable::Leased{.revision = number(find(*outcome, "seq")), .time = lease_time()});
                       const bool again = outcome.error().kind == Failure::Kind::conflict && tries.ended != 0;
                       if (!again) return then(std::unexpected(outcome.error()));
                       --tries.ended;
                       ask_for_lease_later(name, tries, std::move(then));
                     },
                     {{"Nats-Expected-Last-Subject-Sequence", std::to_string(revision)}});
}

void JetStreamStore::ask_for_lease_later(const std::string& name, LeaseTries tries, Then<durable::Leased> then) {
  lease_tries_.push_back(
      [this, name, tries, then = std::move(then)]() mutable { ask_for_lease(name, 0, tries, std::move(then)); });
  if (lease_tries_.size() == 1) scheduler_->start(lease_timer_, kLeasePause);
}

void JetStreamStore::end_lease(std::uint64_t revision) {
  jetstream_.request("$JS.API.STREAM.MSG.DELETE." + lease_stream().name,
                     R"({"seq":)" + std::to_string(revision) + R"(,"no_erase":true})", [](const Outcome<Value>&) {});
}

}  // namespace wirecall::jetstream_store
