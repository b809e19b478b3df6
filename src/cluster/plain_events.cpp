// See plain_events.hpp.
#include "cluster/plain_events.hpp"

namespace wirecall::cluster {

PlainEvents::PlainEvents(NodeContext& context, const std::vector<std::string>& patterns)
    : context_(&context),
      sink_(context),
      dispatcher_(context.host.registry, sink_, context.host.limits, context.host.loop_context) {
  if (patterns.empty()) return;
  peer_ = &static_cast<broker::Peer&>(*dispatcher_.join_broker());
  // As a node it is told what clients of this broker publish, and nothing that other nodes bring.
  peer_->of_node = true;
  peer_->topics.of_node = true;
  for (const std::string& pattern : patterns) context.router.topics().subscribe(peer_->topics, pattern, {});
}

PlainEvents::~PlainEvents() = default;

void PlainEvents::resume() {
  if (!sink_.overfull || context_->bus.waiting_bytes() > context_->host.limits.soft_output / 2) return;
  sink_.overfull = false;
  dispatcher_.on_writable();
}

void PlainEvents::end() noexcept {
  if (peer_ != nullptr) context_->router.topics().remove_all(peer_->topics);
}

bool PlainEvents::Sink::is_overfull() noexcept {
  const bool is = context_->bus.waiting_bytes() > context_->host.limits.soft_output;
  overfull = overfull || is;
  return is;
}

void PlainEvents::Sink::close_message() {
  struct Cleared {
    Buffer* text;
    ~Cleared() { text->clear(); }
  } const cleared{&text_};
  Received event;
  if (read_message(text_.padded(), context_->host.limits, true, event).status != ScanStatus::complete) return;
  if (event.kind != MessageKind::notification || event.method_escaped) return;
  if (event.method() == "rpc.lagged") return;  // whoever subscribes there knows nothing of it
  if (text_.size() > context_->bus.payload_bytes_max()) {
    if (std::exchange(told_, true)) return;
    return context_->log(LogLevel::warning, "cluster: an event is longer than NATS takes at once, and does not go to " +
                                                context_->subjects.topics() + subject_of_name(event.method()));
  }
  static_cast<void>(
      context_->bus.publish(context_->subjects.topics() + subject_of_name(event.method()), {}, text_.view()));
  context_->flush();
}

}  // namespace wirecall::cluster
