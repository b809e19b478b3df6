// See inputs.hpp.
#include "broker/inputs.hpp"

#include "broker/outgoing.hpp"
#include "broker/peer_encoding.hpp"
#include "broker/stream_request.hpp"
#include "message/call_text.hpp"

namespace wirecall::broker {

using State = RelayedCall::State;

bool Inputs::item(Peer& caller, const Received& message) {
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  const auto [id, end] = members_of<2>(reader, message.params(), {"id", "end"});
  const SlotNumber slot = find_of(caller, message, id);
  if (slot == kNoSlot || !calls_[slot].input) return false;
  RelayedInput& input = *calls_[slot].input;
  if (end.empty()) {
    if (input.credit == 0) {
      relay_->give_up(slot, context_->errors.input_overrun);
      return true;
    }
    --input.credit;
    input.item_bytes = std::max(input.item_bytes, message.text.size());
  } else {
    input.ended = true;
    if (calls_[slot].state == State::waiting) return true;  // RequestWriter says so to the provider that is asked
  }
  pass_item(slot, message, id);
  return true;
}

SlotNumber Inputs::find_of(Peer& caller, const Received& message, std::string_view id) {
  if (id.empty()) return kNoSlot;
  if (message.is_json()) return calls_.find_of(caller, id);
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  reader.reset(id);
  return calls_.find_of(caller, reader.json());
}

// An item in an encoding that its provider does not speak goes as JSON, which the provider's connection makes its own.
void Inputs::pass_item(SlotNumber slot, const Received& message, std::string_view id) {
  const RelayedCall& call = calls_[slot];
  rpc::MessageSink& sink = call.provider->peer->sink();
  const ProviderId number{calls_.number_of(slot), true};
  const auto begin_part = [&] { call.provider->peer->begin_part(*call.caller); };
  try {
    if (message.is_json()) {
      begin_part();
      append_message(sink, [&](Buffer& out) { message::append_replaced(out, message.text, id, number.view()); });
    } else if (takes_as_it_is(*call.provider->peer, message.encoding)) {
      begin_part();
      append_message_as(sink, MessageForm::native(message.encoding), [&](Buffer& out) {
        const char* const behind = id.data() + id.size();
        out.append({message.text.data(), static_cast<std::size_t>(id.data() - message.text.data())});
        context_->loop.codecs.native(message.encoding).append_id(out, number.view());
        out.append({behind, static_cast<std::size_t>(message.text.data() + message.text.size() - behind)});
      });
    } else {
      Received unpacked = message;
      Buffer params;
      const std::string_view why =
          context_->loop.codecs.native(message.encoding).unpack(unpacked, context_->limits, params);
      if (!why.empty()) return relay_->give_up(slot, message::unrepresentable_params(why));
      Reader& reader = *context_->loop.codecs.readers.reader;
      const std::string_view json_id = members_of<1>(reader, unpacked.params(), {"id"}).front();
      append_message(sink, [&](Buffer& out) {
        message::begin_call(out, R"("rpc.item")", {});
        out.append(R"(,"params":)");
        message::append_replaced(out, unpacked.params(), json_id, number.view());
        out.push_back('}');
      });
    }
    ++context_->loop.stats.stream_items;
  } catch (const std::bad_alloc&) {
    return relay_->give_up(slot, context_->errors.no_memory);
  }
  pass_credit(slot);
  renew_deadline(slot);
}

bool Inputs::grant(const Peer& provider, std::string_view id_json, std::uint64_t more) {
  const SlotNumber slot = calls_.find(id_json);
  if (slot == kNoSlot) return false;
  const RelayedCall& call = calls_[slot];
  if (!call.input || call.state != State::sent || call.provider->peer != &provider) return false;
  call.input->grant(more);
  pass_credit(slot);
  renew_deadline(slot);
  return true;
}

void Inputs::pass_credit(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  RelayedInput& input = *call.input;
  const std::uint64_t more = input.due(context_->limits.soft_output);
  if (more == 0 || !call.provider->peer->sink().writable()) return;  // until `resume`
  try {
    append_message_as(call.caller->sink(), MessageForm::text(call.form.sent),
                      [&](Buffer& out) { message::append_credit(out, call.id(), more); });
  } catch (const std::bad_alloc&) {
    return relay_->give_up(slot, context_->errors.no_memory);
  }
  input.pass(more);
}

void Inputs::resume(const Peer& provider) noexcept {
  for (const Provider* const one : provider.provides) {
    for (SlotNumber slot = one->sent.first; slot != kNoSlot;) {
      const SlotNumber after = calls_[slot].of_provider.after;
      if (calls_[slot].input && calls_[slot].state == State::sent) pass_credit(slot);
      slot = after;
    }
  }
}

void Inputs::caller_ended(Peer& caller) noexcept {
  for (SlotNumber slot = caller.calls.first; slot != kNoSlot;) {
    const SlotNumber after = calls_[slot].of_caller.after;
    if (calls_[slot].input && !calls_[slot].input->ended) relay_->give_up(slot, context_->errors.cancelled);
    slot = after;
  }
}

// As of a stream of results: call_timeout_ms is what may pass between items, timeout_ms is for the whole.
void Inputs::renew_deadline(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.state != State::sent || context_->loop.scheduler == nullptr) return;
  calls_.stop_timer(slot);
  call.deadline = std::min(call.ends, context_->now() + std::chrono::milliseconds{context_->limits.call_timeout_ms});
  if (call.deadline != kNoDeadline) if_memory_allows([&] { calls_.start_timer(slot); });
}

}  // namespace wirecall::broker
