// See answers.hpp.
#include "broker/answers.hpp"

#include "broker/call_all_shared.hpp"
#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

// What another node has made of itself is remote here; of a broker's own errors that a linked one hands on it says the
// truth. Though nobody has been asked there, one before it may have been.
static OwnErrorEdits edits_of(const RelayedCall& call, const Provider& provider) noexcept {
  return {.origin = provider.at_node ? std::string_view{R"("remote")"} : std::string_view{},
          .keeps_origin = provider.options.linked,
          .maybe = call.asked};
}

void Answers::deliver(SlotNumber slot, const Received& message, Provider& provider) {
  const RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(call.state == RelayedCall::State::sent && call.provider == nullptr);
  if (call.caller == nullptr) {
    if (call.is_subscribing() && message.has(Member::result)) return subscriptions_->begin(slot, message, provider);
    return deliver_to_sink(slot, message, provider);
  }
  if (is_too_large(call, message)) [[unlikely]]
    return fail(slot, rpc::reply_too_large());
  rpc::MessageSink& message_sink = call.caller->sink();
  try {
    if (!message.is_json()) [[unlikely]] {
      message::MessageWriter& writer = context_->loop.codecs.message_writer(message.encoding);
      append_message_as(message_sink, MessageForm::native(message.encoding), [&](Buffer& out) {
        writer.begin_result(out);
        out.append(message[Member::result]);
        writer.end_reply(out, call.id());
      });
      return calls_.forget(slot);
    }
    Buffer stripped;
    const CleanResponse relayed =
        without_origin(message, *context_->loop.codecs.readers.reader, stripped, edits_of(call, provider));
    append_message_as(message_sink, MessageForm::text(call.form.sent),
                      [&](Buffer& out) { message::append_replaced(out, relayed.text, relayed.id, call.id()); });
  } catch (const std::bad_alloc&) {
    message_sink.lose_answer();
  }
  calls_.forget(slot);
}

// The call is forgotten first: what the answer sets off may look for it, and must not find it.
void Answers::deliver_to_sink(SlotNumber slot, const Received& message, const Provider& provider) {
  const OwnErrorEdits edits = edits_of(calls_[slot], provider);
  const bool has_outcomes = provider.at_node && !provider.options.of_process && calls_[slot].extras->call_all.results;
  const std::string node = has_outcomes ? to_json(provider.peer->node->name()) : std::string{};
  Buffer stripped;
  CleanResponse relayed;
  if (message.is_json()) relayed = without_origin(message, *context_->loop.codecs.readers.reader, stripped, edits);
  RelayExtras& extras = *calls_[slot].extras;
  ReplySink sink = std::move(extras.sink);
  const CallAllEntry call_all = std::move(extras.call_all);
  WIRECALL_ASSERT(message.is_json() || !call_all.results);  // Relay::takes_encoded
  calls_.forget(slot);
  if (!message.is_json()) return sink.encoded_result(message[Member::result], {});
  if (!call_all.results) return sink.response(relayed.text, relayed.id, relayed.code);
  if (!relayed.error.empty()) return call_all.results->set(call_all.index, "error", relayed.error);
  if (!node.empty()) return set_outcomes_of(node, call_all, message[Member::result]);
  call_all.results->set(call_all.index, "result", message[Member::result]);
}

// What another node has answered to rpc.call_all, of all of its clients.
void Answers::set_outcomes_of(std::string_view node, const CallAllEntry& of, std::string_view array) noexcept try {
  const std::optional<Buffer> outcomes = outcomes_of_node(array, node, *context_->loop.codecs.readers.reader);
  if (!outcomes) return of.results->set(of.index, context_->errors.malformed);
  of.results->set_all(of.index, outcomes->view());
} catch (const std::bad_alloc&) {
  of.results->set(of.index, context_->errors.no_memory);
}

void Answers::tell(SlotNumber slot, const Error& error) noexcept {
  const RelayedCall& call = calls_[slot];
  context_->loop.stats.count_error(error.code());
  rpc::MessageSink& message_sink = call.caller->sink();
  rpc::Reply reply{&message_sink, &context_->loop, call.form, context_->limits.max_message_size};
  try {
    reply.error(error, call.id());
  } catch (const std::bad_alloc&) {
    reply.discard();
    message_sink.lose_answer();
  }
}

void Answers::fail(SlotNumber slot, const Error& why) noexcept {
  const RelayedCall& call = calls_[slot];
  // Whatever became of it since, a provider may have got it before.
  std::optional<Error> asked;
  if (call.asked) asked = message::with_delivered(why, "maybe");
  const Error& error = asked ? *asked : why;
  if (!tap_feed_->empty()) tap_feed_->end(calls_.number_of(slot), call, error);
  log_failure(slot, error);
  if (call.caller != nullptr) {
    tell(slot, error);
    return calls_.forget(slot);
  }
  ReplySink sink = std::move(call.extras->sink);
  const CallAllEntry call_all = std::move(call.extras->call_all);
  calls_.forget(slot);  // as in `deliver_to_sink`
  if (call_all.results) return call_all.results->set(call_all.index, error);
  if_memory_allows([&] { sink.error(error); });
}

void Answers::log_failure(SlotNumber slot, const Error& error) noexcept {
  if (error.code() == static_cast<int>(ErrorCode::cancelled)) return;  // as its caller wanted it
  const RelayedCall& call = calls_[slot];
  context_->log.failed(call.provider != nullptr ? std::string_view{call.provider->route->name()} : std::string_view{},
                       call.caller, error);
}

}  // namespace wirecall::broker
