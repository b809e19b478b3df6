// See request_writer.hpp.
#include "broker/request_writer.hpp"

#include "broker/call_all_shared.hpp"
#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "broker/stream_request.hpp"
#include "message/call_text.hpp"
#include "message/read_error.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;

// What does not go to a provider as it came.
constexpr std::uint32_t kChanged = bit_of(Member::timeout_ms) | bit_of(Member::to) | bit_of(Member::from);

static std::uint64_t number_of(milliseconds time) noexcept { return static_cast<std::uint64_t>(time.count()); }

void RequestWriter::sent(SlotNumber slot) {
  ++context_->loop.stats.calls_relayed;
  if (RelayedStream* const stream = calls_[slot].stream.get()) {
    stream->credit = first_credit(calls_[slot]);
    stream->withheld -= stream->credit;
  }
  calls_.enter_provider(slot);
  const RelayedInput* const input = calls_[slot].input.get();
  if (input == nullptr || !input->ended) [[likely]]
    return;
  // Ended while it waited, and so without an item.
  if (const Peer* const caller = calls_[slot].caller; caller != nullptr)
    calls_[slot].provider->peer->begin_part(*caller);
  append_message(calls_[slot].provider->peer->sink(), [&](Buffer& out) {
    message::begin_call(out, R"("rpc.item")", R"({"id":)");
    out.append(ProviderId{calls_.number_of(slot), true}.view());
    out.append(R"(,"seq":0,"end":true}})");
  });
}

// What the provider is given. A node has a little less than its caller: so it is the one that says what has become of a
// call that has run out of time, which may have waited there.
milliseconds RequestWriter::time_for(const RelayedCall& call) noexcept {
  const milliseconds left = calls_.time_left(call);
  const RemoteNode* const node = call.provider->peer->node;
  if (node == nullptr) [[likely]]
    return left;
  constexpr milliseconds kLate{5};  // what a timer may be
  const milliseconds way = std::chrono::ceil<milliseconds>(node->latency()) + kLate;
  return left - std::min(way, left / 8);
}

// What another node is told besides the message.
void RequestWriter::begin_at_node(SlotNumber slot, const Received& message, const Peer& caller) noexcept {
  const RelayedCall& call = calls_[slot];
  RemoteNode::CallFacts facts{
      .principal = caller.principal_name(), .number = calls_.number_of(slot), .form = call.form};
  if (!message.has(Member::timeout_ms) && !call.stream && call.deadline != kNoDeadline) facts.left = time_for(call);
  call.provider->peer->node->begin_call(facts);
}

void RequestWriter::send(SlotNumber slot, const Received& message, const Peer* caller, std::string_view from) {
  if (caller != nullptr && calls_[slot].provider->peer->node != nullptr) [[unlikely]]
    begin_at_node(slot, message, *caller);
  if (!message.is_json()) [[unlikely]]
    return send_encoded(slot, message, from);
  RelayedCall& call = calls_[slot];
  Provider& provider = *call.provider;
  StreamEdits edits{.id = ProviderId{calls_.number_of(slot), call.input != nullptr}};
  if (call.stream && provider.peer->sink().strict_peer()) call.stream->without_credit = true;
  append_message(provider.peer->sink(), [&](Buffer& out) {
    if ((message.present & (kChanged | bit_of(Member::stream))) == 0 && !call.stream && !call.extras && from.empty())
        [[likely]]
      return message::append_replaced(out, message.text, message[Member::id], edits.id.view());
    Splice splice{message.text};
    edit_stream(context_->loop, call, message, edits, splice);
    std::optional<Digits> left;
    if (message.has(Member::timeout_ms) && call.deadline != kNoDeadline) {
      splice.replace(message[Member::timeout_ms], left.emplace(number_of(time_for(call))).view());
    }
    address(splice, message, from, provider.options.linked || provider.at_node);
    splice.append_to(out);
  });
  sent(slot);
}

// Of a request in another encoding, whose provider speaks that, too.
void RequestWriter::send_encoded(SlotNumber slot, const Received& message, std::string_view from) {
  RelayedCall& call = calls_[slot];
  message::RequestEdits edits{.id = calls_.number_of(slot), .id_is_string = call.input != nullptr};
  if (message.has(Member::timeout_ms) && call.deadline != kNoDeadline) edits.timeout_ms = number_of(time_for(call));
  edits.from_json = from;
  edits.keeps_to = call.provider->options.linked || call.provider->at_node;
  if (message.has(Member::stream)) edits.stream = call.stream ? first_credit(call) : 0;
  rpc::MessageSink& sink = call.provider->peer->sink();
  append_message_as(sink, MessageForm::native(message.encoding), [&](Buffer& out) {
    context_->loop.codecs.message_writer(message.encoding).append_request(out, message.text, edits);
  });
  sent(slot);
}

void RequestWriter::send_to_all(SlotNumber slot, const Peer* caller) {
  const RelayedCall& call = calls_[slot];
  const RequestToAll& request = *call.extras->to_all;
  const std::optional<milliseconds> left = call.deadline == kNoDeadline ? std::nullopt : std::optional{time_for(call)};
  const Digits id{calls_.number_of(slot)};
  RemoteNode* const node = call.provider->peer->node;
  if (caller != nullptr && node != nullptr) [[unlikely]] {
    const std::string from = caller->name.empty() ? std::string{} : caller->name_json();
    const bool of_process = call.provider->options.of_process;
    node->begin_call({.principal = caller->principal_name(),
                      .left = of_process ? left : std::nullopt,
                      .number = calls_.number_of(slot)});
    append_message(call.provider->peer->sink(), [&](Buffer& out) {
      request.append_for_node(out, id.view(), {.from = from, .left = left, .of_process = of_process});
    });
  } else {
    append_message(call.provider->peer->sink(),
                   [&](Buffer& out) { request.append_to(out, id.view(), left.value_or(milliseconds{0})); });
  }
  sent(slot);
  calls_[slot].extras->to_all = nullptr;
}

void RequestWriter::notify(const Provider& provider, const Received& message, const Peer& caller,
                           std::string_view from) {
  if (provider.peer->is_congested() || !has_budget(provider, message.text.size())) {
    ++context_->loop.stats.events_dropped;
    return;
  }
  if (RemoteNode* const node = provider.peer->node) [[unlikely]]
    node->begin_call({.principal = caller.principal_name()});
  if (provider.peer->linked != nullptr) [[unlikely]] {
    append_message(provider.peer->sink(),
                   [](Buffer& out) { out.append(R"({"jsonrpc":"2.0","method":"rpc.linked.notify"})"); });
  }
  if (message.is_json()) [[likely]]
    return append_message(provider.peer->sink(),
                          [&](Buffer& out) { append_addressed(out, message, from, provider.at_node); });
  append_message_as(provider.peer->sink(), MessageForm::native(message.encoding), [&](Buffer& out) {
    append_addressed(context_->loop.codecs, out, message, from, provider.at_node);
  });
}

std::optional<Error> RequestWriter::read_kept(std::string_view text, Encoding wanted, Buffer& read, Received& message) {
  const Encoding encoding = message::encoding_of(text[0]);
  if (encoding == Encoding::json) [[likely]] {
    static_cast<void>(read_message(text, context_->limits, true, message));
    return std::nullopt;
  }
  if (wanted != encoding) return read_as_json({text, encoding}, read, message);
  // As it has been before.
  message::Transcoder& transcoder = context_->loop.codecs.transcoder(encoding);
  if (message::NativeTranscoder* const native = transcoder.native()) {
    static_cast<void>(native->read(text, context_->limits, read, message));
    message::NativeTranscoder::restore(encoding, text, message);
    message.text = text;
    return std::nullopt;
  }
  message::IdText id;
  if (!transcoder.read_request(text, context_->limits, id, message))
    return read_as_json({text, encoding}, read, message);
  static_cast<void>(read.reserve(id.size()));  // so that nothing moves
  for (const Member member : {Member::id, Member::to, Member::from}) {
    if (!message.has(member)) continue;
    const std::size_t begin = read.size();
    read.append(message[member]);
    message.spans[static_cast<std::size_t>(member)] = {read.data() + begin, read.size() - begin};
  }
  return std::nullopt;
}

std::optional<Error> RequestWriter::read_as_json(EncodedText request, Buffer& json, Received& message) {
  message::Transcoder& transcoder = context_->loop.codecs.transcoder(request.encoding);
  const auto status = transcoder.to_json(request.text, context_->limits, json);
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  if (!unrepresentable.empty()) return message::unrepresentable_params(unrepresentable.front().why);
  if (status != message::Transcoder::Status::done || json.size() > context_->limits.max_message_size)
    return message::too_large_as_json();
  // As JSON it may nest deeper: an object of one member whose name begins with `$` is wrapped there.
  const Scan scan = read_message(json.padded(), context_->limits, true, message);
  if (scan.status != ScanStatus::complete)
    return message::unrepresentable_params("as JSON they nest deeper than a message may");
  return std::nullopt;
}

}  // namespace wirecall::broker
