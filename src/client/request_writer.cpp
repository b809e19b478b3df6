// See request_writer.hpp.
#include "client/request_writer.hpp"

#include "base/decimal.hpp"
#include "client/stream.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;

static void append_member(Buffer& out, std::string_view name, std::optional<std::uint64_t> number) {
  if (!number) return;
  out.append(name);
  append_number(out, *number);
}

// Not what a server gives anyway. Of a stream, the time to say is one that it has been given as a whole.
static bool says_timeout(const ClientCall& call) noexcept {
  return call.credit != 0 || call.input ? call.own_timeout : call.timeout != milliseconds{kCallTimeoutMs};
}

/// The optional members of a request's envelope; an empty one is not written.
struct RequestWriter::EnvelopeMembers {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> timeout_ms;
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> hops;
};

void RequestWriter::write() noexcept {
  write_controls();
  while (calls_.queued()) {
    ClientConnection* connection = connections_.free_connection();
    if (connection == nullptr) return;
    write(calls_.pop_queued(), *connection);
  }
}

void RequestWriter::write_controls() noexcept {
  for (const auto& connection : connections_) {
    std::vector<std::string>& controls = connection->controls;
    if (controls.empty() || !connection->is_open()) [[likely]]
      continue;
    auto next = controls.begin();
    try {
      for (; next != controls.end(); ++next) rpc::send_message(*connection->sink, *next);
    } catch (const std::bad_alloc&) {
    }
    controls.erase(controls.begin(), next);
    connection->unattributed.extend(connection->written_bytes());
  }
}

// Writes the call and those that go with it as one message.
void RequestWriter::write(ClientCall& first, ClientConnection& connection) noexcept {
  rpc::MessageSink& sink = *connection.sink;
  const bool http = connection.http != nullptr;
  if (http) [[unlikely]]
    connection.http->set_timeout(time_to_tell(first));
  const bool batch = first.next_in_batch != nullptr;
  if (batch) connection.missing.batch_sent();
  Buffer* opened = nullptr;
  try {
    Buffer& out = sink.open_message();
    opened = &out;
    const std::size_t begin = out.size();
    std::size_t count = 0;
    const bool text = !shared_.writes_natively();
    for (const ClientCall* call = &first; call != nullptr; call = call->next_in_batch) ++count;
    if (batch && text) out.push_back('[');
    if (batch && !text) native().begin_batch(out, count);
    for (ClientCall* call = &first; call != nullptr; call = call->next_in_batch) {
      if (call != &first && text) out.push_back(',');
      append(out, *call, !http, batch);
    }
    if (batch && text) out.push_back(']');
    const ConnectionLimits& limits = connection.limits;
    if (out.size() - begin > limits.message_bytes_max || count > limits.batch_max) [[unlikely]] {
      sink.discard_message();
      return calls_.not_sent(first, count > limits.batch_max ? "batch" : "max_message_size");
    }
    sink.close_compact_as(shared_.form);
  } catch (const std::bad_alloc&) {
    if (opened != nullptr) sink.discard_message();
    return calls_.not_sent(first, {});
  }
  if (http) [[unlikely]] {
    connection.awaiting_response = true;
    connection.unattributed.clear();
  }
  const std::uint64_t position = connection.written_bytes();
  std::uint32_t index = 0;
  for (ClientCall* call = &first; call != nullptr;) {
    ClientCall* next = std::exchange(call->next_in_batch, nullptr);
    call->index = index++;
    call->in_batch = batch;
    connection.add(*call, position);
    call = next;
  }
}

void RequestWriter::resend(std::chrono::nanoseconds& wait_max) noexcept {
  for (const auto& connection : connections_) {
    if (!connection->resends) [[likely]]
      continue;
    const std::chrono::nanoseconds now = shared_.loop.now();
    bool any = false;
    for (ClientCall* call : connection->calls) {
      if (!call->idempotent || call->in_batch) continue;
      any = true;
      if (call->not_before <= now) {
        if (connection->is_up()) resend(*call, *connection);
        if (call->resent < 4) ++call->resent;
        call->not_before = now + ClientCall::pause_of_resending(call->resent);
      }
      shorten(wait_max, call->not_before - now);
    }
    connection->resends = any;
  }
}

// Under the same id, so that an answer to either will do. For want of memory it is as if it were lost.
void RequestWriter::resend(ClientCall& call, ClientConnection& connection) noexcept {
  Buffer* opened = nullptr;
  try {
    opened = &connection.sink->open_message();
    append(*opened, call, true, false);
    connection.sink->close_compact_as(shared_.form);
  } catch (const std::bad_alloc&) {
    if (opened != nullptr) connection.sink->discard_message();
  }
}

// `with_members`: of ours; else the head of a POST says what there is to say, and a stream comes all at once.
void RequestWriter::append(Buffer& out, ClientCall& call, bool with_members, bool in_batch) {
  EnvelopeMembers members;
  if (!call.notification) {
    if (call.state == CallState::queued) calls_.insert(call);
    members.id = call.id;
    if (with_members && says_timeout(call)) {
      // To the next item of a stream there may be less.
      const std::chrono::nanoseconds deadline = call.stream != nullptr ? call.stream->whole_until() : call.deadline;
      const auto left = std::chrono::ceil<milliseconds>(deadline - shared_.loop.now());
      members.timeout_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 1));
    }
    if (with_members && call.credit != 0) members.stream = call.credit;
  }
  if (call.hops != 0) members.hops = call.hops;
  if (shared_.writes_natively()) [[unlikely]]
    return append_natively(out, call, members, in_batch);
  out.append(call.request.view());
  if (call.input) [[unlikely]] {
    out.append(R"(,"id":)");
    out.append(call.id_json());
    out.append(R"(,"input":true)");
  } else {
    append_member(out, R"(,"id":)", members.id);
  }
  append_member(out, R"(,"timeout_ms":)", members.timeout_ms);
  append_member(out, R"(,"stream":)", members.stream);
  append_member(out, R"(,"hops":)", members.hops);
  if (!call.to.empty()) {
    out.append(R"(,"to":)");
    out.append(call.to);
  }
  out.push_back('}');
}

void RequestWriter::append_natively(Buffer& out, const ClientCall& call, const EnvelopeMembers& members,
                                    bool in_batch) {
  struct Named {
    std::string_view name;
    const std::optional<std::uint64_t>& number;
  };
  const Named named[] = {
      {"id", members.id}, {"timeout_ms", members.timeout_ms}, {"stream", members.stream}, {"hops", members.hops}};
  std::size_t count = call.has_params ? 3 : 2;
  for (const Named& one : named) count += one.number ? 1 : 0;
  using Place = message::MessageWriter::Place;
  native().begin_request(out, count + (call.to.empty() ? 0 : 1) + (call.input ? 1 : 0),
                         in_batch ? Place::element : Place::message);
  out.append(call.request.view());
  for (const Named& one : named) {
    if (!one.number) continue;
    if (call.input && one.name == "id") {
      native().append_member(out, one.name, Buffer{call.id_json()}.padded());
    } else {
      native().append_member(out, one.name, *one.number);
    }
  }
  if (!call.to.empty()) native().append_member(out, "to", Buffer{call.to}.padded());
  if (call.input) native().append_member(out, "input", Buffer{"true"}.padded());
}

// By HTTP, the time that the server is told: that of the call that has most, unless one has what servers give anyway.
milliseconds RequestWriter::time_to_tell(const ClientCall& first) const {
  milliseconds most{0};
  for (const ClientCall* call = &first; call != nullptr; call = call->next_in_batch) {
    if (call->notification) continue;
    if (!says_timeout(*call)) return milliseconds{0};
    most = std::max({most, std::chrono::ceil<milliseconds>(call->deadline - shared_.loop.now()), milliseconds{1}});
  }
  return most;
}

}  // namespace wirecall::net
