// See jetstream.hpp.
#include "jetstream_store/jetstream.hpp"

#include <charconv>

#include "jetstream_store/jetstream_answers.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

using durable::Failure;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kTick{250};
// In which a request is answered.
constexpr milliseconds kAnswerTime{5000};
// For which the first message for a consumer is waited for, before it is asked for anew.
constexpr milliseconds kPullTime{5000};
constexpr std::string_view kAcknowledge = "$JS.ACK.";
const Failure kNotConnected{.why = "the connection to NATS is lost"};

// "STREAM.CONSUMER" of "$JS.ACK.STREAM.CONSUMER.…".
static std::string_view consumer_of(std::string_view reply) noexcept {
  const std::string_view rest = reply.substr(kAcknowledge.size());
  const std::size_t stream = rest.find('.');
  return rest.substr(0, stream == rest.npos ? stream : rest.find('.', stream + 1));
}

JetStream::JetStream(std::unique_ptr<net::HeaderBus> bus, std::string inbox, Scheduler& scheduler)
    : bus_(std::move(bus)), inbox_(std::move(inbox) + '.'), scheduler_(&scheduler), flush_timer_([this] {
        flushes_ = false;
        for (const std::uint64_t number : std::exchange(unsent_, {})) fail(number, kNotConnected);
        bus_->flush();
      }) {
  bus_->on_state([this] { bus_changed(); });
  bus_->subscribe(inbox_ + '*', [this](const cluster::BusMessage& message) { take(message); });
}

JetStream::~JetStream() {
  scheduler_->stop(tick_timer_);
  scheduler_->stop(flush_timer_);
}

bool JetStream::is_connected() const noexcept { return bus_->state() == cluster::Bus::State::connected; }

void JetStream::bus_changed() {
  if (std::exchange(connected_, is_connected()) == connected_) return;
  if (!connected_) {
    std::vector<std::uint64_t> lost;
    for (const auto& [number, waiter] : waiters_) lost.push_back(number);
    for (const std::uint64_t number : lost) fail(number, kNotConnected);
  }
  if (changed_) changed_(connected_);
}

// ---- asking ----

std::uint64_t JetStream::add(Waiter waiter) {
  waiters_.emplace(++last_, std::move(waiter));
  if (!std::exchange(ticks_, true)) scheduler_->start(tick_timer_, kTick);
  return last_;
}

void JetStream::wants_flush() {
  if (!std::exchange(flushes_, true)) scheduler_->start(flush_timer_, nanoseconds{0});
}

void JetStream::publish(std::uint64_t number, std::string_view subject, std::string_view payload,
                        const Headers& headers) {
  if (!bus_->publish_with(headers, subject, inbox_ + std::to_string(number), payload)) unsent_.push_back(number);
  wants_flush();
}

void JetStream::request(std::string_view subject, std::string_view payload, durable::Then<Value> then,
                        const Headers& headers) {
  const std::uint64_t number = add({.deadline = scheduler_->now() + kAnswerTime, .answered = std::move(then)});
  publish(number, subject, payload, headers);
}

void JetStream::request_all(std::vector<std::pair<std::string, std::string>> asked,
                            durable::Then<std::vector<std::optional<Value>>> then) {
  struct Asking {
    durable::Then<std::vector<std::optional<Value>>> then;
    std::vector<std::optional<Value>> answers;
    std::size_t left;
    std::optional<Failure> failure;
  };
  auto asking = std::make_shared<Asking>(Asking{.then = std::move(then),
                                                .answers = std::vector<std::optional<Value>>(asked.size()),
                                                .left = asked.size(),
                                                .failure = std::nullopt});
  for (std::size_t at = 0; at != asked.size(); ++at) {
    request(asked[at].first, asked[at].second, [asking, at](durable::Outcome<Value> outcome) {
      if (outcome) {
        asking->answers[at] = *std::move(outcome);
      } else if (outcome.error().kind != Failure::Kind::unknown) {
        asking->failure = outcome.error();
      }
      if (--asking->left != 0) return;
      if (asking->failure) return asking->then(std::unexpected(*std::move(asking->failure)));
      asking->then(std::move(asking->answers));
    });
  }
}

// So many of them at a time as JetStream tells.
void JetStream::list_subjects(const std::string& stream, const std::string& filter,
                              std::function<void(std::string_view, std::uint64_t)> each,
                              durable::Then<durable::Done> then, std::uint64_t offset) {
  const std::string asked = R"({"subjects_filter":)" + to_json(filter) + R"(,"offset":)" + std::to_string(offset) + "}";
  request("$JS.API.STREAM.INFO." + stream, asked,
          [this, stream, filter, each = std::move(each), then = std::move(then),
           offset](const durable::Outcome<Value>& outcome) mutable {
            if (!outcome) return then(std::unexpected(outcome.error()));
            const Value* const subjects = find(*outcome, "state", "subjects");
            const std::size_t size = subjects != nullptr && subjects->is_object() ? subjects->size() : 0;
            if (size != 0) {
              for (const auto& [subject, messages] : subjects->as_object()) each(subject, number(&messages));
            }
            offset += size;
            if (size == 0 || offset >= number(find(*outcome, "total"))) return then(durable::Done{});
            list_subjects(stream, filter, std::move(each), std::move(then), offset);
          });
}

void JetStream::send(std::string_view subject, std::string_view payload) {
  static_cast<void>(bus_->publish(subject, {}, payload));
  wants_flush();
}

// What is there is taken at once; where nothing is, one message is waited for, and the others taken the next time.
void JetStream::pull(const std::string& stream, const std::string& consumer, std::size_t count, std::size_t bytes,
                     Wait wait, durable::Then<std::vector<PulledMessage>> then) {
  const std::uint64_t number = add({.deadline = scheduler_->now() + kAnswerTime,
                                    .pulled = std::move(then),
                                    .consumer = consumer,
                                    .stream = stream,
                                    .count = count,
                                    .bytes = bytes,
                                    .wait = wait});
  pulls_[stream + '.' + consumer] = number;
  ask(number, false);
}

void JetStream::ask(std::uint64_t number, bool wait) {
  // One message always fits into what is asked for.
  constexpr std::size_t kHeadBytesMax = std::size_t{64} << 10U;
  Waiter& waiter = waiters_.at(number);
  waiter.waits = wait;
  waiter.deadline = scheduler_->now() + kAnswerTime + (wait ? kPullTime : milliseconds{0});
  std::string text = wait ? R"({"batch":1,"expires":)" + std::to_string(nanoseconds{kPullTime}.count())
                          : R"({"batch":)" + std::to_string(waiter.count) + R"(,"no_wait":true,"max_bytes":)" +
                                std::to_string(waiter.bytes + payload_bytes_max() + kHeadBytesMax);
  text += '}';
  publish(number, "$JS.API.CONSUMER.MSG.NEXT." + waiter.stream + '.' + waiter.consumer, text, {});
}

// ---- what comes ----

void JetStream::take(const cluster::BusMessage& message) {
  if (message.reply.starts_with(kAcknowledge)) return take_pulled(message);
  if (!message.subject.starts_with(inbox_)) return;
  const std::string_view digits = message.subject.substr(inbox_.size());
  std::uint64_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc{}) return;
  const auto found = waiters_.find(number);
  if (found == waiters_.end()) return;
  Waiter& waiter = found->second;
  if (waiter.pulled) {  // that there is nothing, or nothing more
    if (message.no_responders || message.status == "503")
      return fail(number, {.why = "JetStream does not answer: nats-server has to run with it (-js)"});
    if (message.status == "409" && waiter.waits)  // it has been forgotten, or NATS is about to end
      return fail(number, {.kind = Failure::Kind::unknown, .why = "JetStream has ended the consumer"});
    if (waiter.wait == Wait::yes && !waiter.waits && waiter.messages.empty()) return ask(number, true);
    return end_pull(number);
  }
  if (message.no_responders) {
    if (absent_) absent_();
    return fail(number, {.why = "JetStream does not answer: nats-server has to run with it (-js)"});
  }
  auto answer = Value::parse(message.payload);
  if (!answer || !answer->is_object()) return fail(number, {.why = "JetStream's answer is not understood"});
  if (const Value* const error = answer->find("error"); error != nullptr && error->is_object()) {
    const Value* const code = error->find("code");
    const Value* const said = error->find("description");
    constexpr std::uint64_t kWrongLastSequence = 10'071;
    constexpr std::uint64_t kNameInUse = 10'058;
    constexpr std::uint64_t kNoStream = 10'059;
    const std::uint64_t said_code = jetstream_store::number(find(*error, "err_code"));
    if (said_code == kNoStream && absent_) absent_();
    const bool is_other = said_code == kWrongLastSequence || said_code == kNameInUse;
    const bool is_none = jetstream_store::number(code) == 404;
    return fail(number,
                {.kind = is_other  ? Failure::Kind::conflict
                         : is_none ? Failure::Kind::unknown
                                   : Failure::Kind::broken,
                 .why = "JetStream: " + (said != nullptr && said->is_string() ? said->as_string() : "an error")});
  }
  durable::Then<Value> then = std::move(waiter.answered);
  waiters_.erase(found);
  then(*std::move(answer));
}

void JetStream::take_pulled(const cluster::BusMessage& message) {
  const auto pull = pulls_.find(consumer_of(message.reply));
  if (pull == pulls_.end()) return send(message.reply, "-NAK");  // it has been given up: somebody else gets it
  const std::uint64_t number = pull->second;
  Waiter& waiter = waiters_.at(number);
  waiter.messages.push_back({.subject = std::string{message.subject},
                             .reply = std::string{message.reply},
                             .payload = std::string{message.payload}});
  if (waiter.waits || waiter.messages.size() == waiter.count) end_pull(number);
}

void JetStream::end_pull(std::uint64_t number) {
  const auto found = waiters_.find(number);
  Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  forget_pull(number, waiter);
  waiter.pulled(std::move(waiter.messages));
}

// Another one may have begun for a consumer that was made anew.
void JetStream::forget_pull(std::uint64_t number, const Waiter& waiter) noexcept {
  const auto pull = pulls_.find(waiter.stream + '.' + waiter.consumer);
  if (pull != pulls_.end() && pull->second == number) pulls_.erase(pull);
}

void JetStream::fail(std::uint64_t number, Failure failure) {
  const auto found = waiters_.find(number);
  if (found == waiters_.end()) return;
  Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  if (!waiter.pulled) return waiter.answered(std::unexpected(std::move(failure)));
  forget_pull(number, waiter);
  for (const PulledMessage& message : waiter.messages) send(message.reply, "-NAK");
  waiter.pulled(std::unexpected(std::move(failure)));
}

void JetStream::tick() {
  ticks_ = false;
  const nanoseconds now = scheduler_->now();
  std::vector<std::uint64_t> late;
  for (const auto& [number, waiter] : waiters_) {
    if (waiter.deadline <= now) late.push_back(number);
  }
  for (const std::uint64_t number : late) {
    fail(number, {.why = "JetStream has not answered within " + std::to_string(kAnswerTime.count() / 1000) +
                         " s: it may have done what it was asked for, or not"});
  }
  if (!waiters_.empty() && !std::exchange(ticks_, true)) scheduler_->start(tick_timer_, kTick);
}

}  // namespace wirecall::jetstream_store
