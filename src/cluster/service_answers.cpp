// See service_answers.hpp.
#include "cluster/service_answers.hpp"

#include <ctime>

#include "rpc/access.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

constexpr std::string_view kVerbNames[] = {"ping", "info", "stats"};

// With a fraction: nats-py reads no time without one.
std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000000Z", &parts)};
}

// An endpoint is called by letters, digits, `-` and `_`.
std::string endpoint_name(std::string_view method) {
  std::string name{method};
  for (char& c : name) {
    if (!is_word({&c, 1})) c = '_';
  }
  return name;
}

}  // namespace

ServiceAnswers::ServiceAnswers(NodeContext& context, const PlainCalls& calls, std::string_view realm)
    : context_(&context),
      calls_(&calls),
      name_("wirecall-" + std::string{realm}),
      realm_(realm),
      started_(now_as_text()),
      subjects_{"$SRV.*", "$SRV.*." + name_, "$SRV.*." + name_ + '.' + context.own} {
  for (const std::string& subject : subjects_)
    context.bus.subscribe(subject, [this](const BusMessage& message) { take(message); });
}

void ServiceAnswers::drain() noexcept {
  for (const std::string& subject : subjects_) context_->bus.unsubscribe(subject);
}

void ServiceAnswers::take(const BusMessage& message) {
  if (!PlainCalls::may_be_answered(message.reply) || !PlainCalls::has_room(*context_)) return;
  constexpr std::string_view kPrefix = "$SRV.";
  const std::string_view rest = message.subject.substr(kPrefix.size());
  const std::string_view word = rest.substr(0, rest.find('.'));
  Verb verb;
  if (word == "PING") {
    verb = Verb::ping;
  } else if (word == "INFO") {
    verb = Verb::info;
  } else if (word == "STATS") {
    verb = Verb::stats;
  } else {
    return;
  }
  Written& written = written_[static_cast<std::size_t>(verb)];
  const nanoseconds now = context_->now();
  if (written.at < nanoseconds{0} || now - written.at > kAnswerAge) {
    written.text = write(verb);
    written.at = now;
  }
  static_cast<void>(context_->bus.publish(message.reply, {}, written.text));
  context_->flush();
}

std::string ServiceAnswers::endpoint(Verb verb, std::string_view method) const {
  std::string text = R"({"name":)" + to_json(endpoint_name(method)) + R"(,"subject":)" +
                     to_json(context_->subjects.methods() + subject_of_name(method)) + R"(,"queue_group":")" +
                     std::string{PlainCalls::kGroup} + '"';
  if (verb == Verb::info) return text + R"(,"metadata":{"method":)" + to_json(method) + "}}";
  const auto found = calls_->counts().find(method);
  const PlainCalls::Counts none;
  const PlainCalls::Counts& counts = found == calls_->counts().end() ? none : found->second;
  const auto average = counts.requests == 0 ? 0 : counts.time.count() / static_cast<std::int64_t>(counts.requests);
  return text + R"(,"num_requests":)" + std::to_string(counts.requests) + R"(,"num_errors":)" +
         std::to_string(counts.errors) + R"(,"last_error":)" + to_json(counts.last_error) + R"(,"processing_time":)" +
         std::to_string(counts.time.count()) + R"(,"average_processing_time":)" + std::to_string(average) +
         R"(,"data":{}})";
}

std::string ServiceAnswers::write(Verb verb) const {
  const std::string_view kind = kVerbNames[static_cast<std::size_t>(verb)];
  std::string text = R"({"name":")" + name_ + R"(","id":")" + context_->own +
                     R"(","version":")" WIRECALL_VERSION R"(","metadata":{"realm":")" + realm_ + R"(","node":")" +
                     context_->own;
  std::string rest = R"("},"type":"io.nats.micro.v1.)" + std::string{kind} + R"(_response")";
  if (verb == Verb::info) rest += R"(,"description":"JSON-RPC methods of a wirecall broker")";
  if (verb == Verb::stats) rest += R"(,"started":")" + started_ + '"';
  if (verb == Verb::ping) return text + rest + '}';
  std::string endpoints;
  std::size_t left_out = 0;
  constexpr std::size_t kRoomForCount = 64;
  const std::size_t fixed = text.size() + rest.size() + kRoomForCount;
  const std::size_t least_fixed = context_->subjects.methods().size() + std::size(R"("name":"","subject":"")");
  const auto add = [&](std::string_view method) {
    const std::size_t least = least_fixed + 2 * method.size();  // not to write what finds no room
    if (fixed + endpoints.size() + least > context_->bus.payload_bytes_max()) return static_cast<void>(++left_out);
    const std::string one = endpoint(verb, method);
    if (fixed + endpoints.size() + one.size() > context_->bus.payload_bytes_max()) return static_cast<void>(++left_out);
    if (!endpoints.empty()) endpoints += ',';
    endpoints += one;
  };
  if (const auto principal = calls_->principal()) {
    for (const auto& own : context_->host.registry.methods()) {
      if (rpc::may_call(*principal, own->name())) add(own->name());
    }
    std::string after;
    const broker::MethodTable& methods = context_->router.methods();
    for (const broker::Route* route = methods.next(after); route != nullptr; route = methods.next(after)) {
      after = route->name();
      if (route->is_provided() && rpc::may_call(*principal, after)) add(after);
    }
  }
  if (left_out != 0) text += R"(","endpoints_left_out":")" + std::to_string(left_out);
  return text + rest + R"(,"endpoints":[)" + endpoints + "]}";
}

}  // namespace wirecall::cluster
