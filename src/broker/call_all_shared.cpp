// See call_all_shared.hpp.
#include "broker/call_all_shared.hpp"

#include "base/decimal.hpp"
#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "message/error_text.hpp"

namespace wirecall::broker {

constexpr std::string_view kInternalError = R"({"code":-32603,"message":"Internal error"})";

RequestToAll::RequestToAll(const Parts& parts, const Received& caller) {
  text_.append("{");
  if (!parts.from.empty()) text_.append(R"("from":)" + std::string{parts.from} + ",");
  text_.append(R"("jsonrpc":"2.0",)");
  method_at_ = text_.size();
  text_.append(R"("method":)");
  text_.append(to_json(parts.method));
  if (!parts.params.empty()) {
    text_.append(R"(,"params":)");
    params_at_ = text_.size();
    Splice params{parts.params};
    if (!parts.progress_token.empty()) params.remove(parts.progress_token);
    params.append_to(text_);
    params_bytes_ = text_.size() - params_at_;
  }
  asked_end_ = text_.size();
  if (parts.timed) {
    text_.append(R"(,"timeout_ms":)");
    time_at_ = text_.size();
  }
  // What goes on to each provider as the caller has said it.
  for (const auto& [member, name] : {std::pair{Member::hops, R"(,"hops":)"},
                                     {Member::traceparent, R"(,"traceparent":)"},
                                     {Member::tracestate, R"(,"tracestate":)"}}) {
    if (!caller.has(member)) continue;
    text_.append(name);
    text_.append(caller[member]);
  }
  text_.append(R"(,"id":)");
  id_at_ = text_.size();
  text_.append("}");
}

void RequestToAll::append_to(Buffer& out, std::string_view id, std::chrono::milliseconds left) const {
  static_cast<void>(out.reserve(text_.size() + id.size() + kDecimalDigitsMax));
  std::size_t at = 0;
  if (time_at_) {
    out.append(text().substr(0, *time_at_));
    out.append(Digits{static_cast<std::uint64_t>(left.count())}.view());
    at = *time_at_;
  }
  out.append(text().substr(at, id_at_ - at));
  out.append(id);
  out.append(text().substr(id_at_));
}

// The answer for its clients takes the way back: the call as a whole has more time than they have.
void RequestToAll::append_for_node(Buffer& out, std::string_view id, const ForNode& node) const {
  const auto append_time = [&](std::chrono::milliseconds time) {
    out.append(R"(,"timeout_ms":)");
    out.append(Digits{static_cast<std::uint64_t>(time.count())}.view());
  };
  out.append("{");
  if (!node.from.empty()) out.append(R"("from":)" + std::string{node.from} + ",");
  out.append(R"("jsonrpc":"2.0",)");
  if (!node.of_process) out.append(R"("method":"rpc.call_all","params":{)");
  out.append(text().substr(method_at_, asked_end_ - method_at_));
  if (!node.of_process) {
    if (node.left) append_time(*node.left);
    out.append("}");
  }
  if (time_at_ && node.left) append_time(node.of_process ? *node.left : *node.left + 2 * kToAnswer);
  const std::size_t behind = time_at_.value_or(asked_end_);
  out.append(text().substr(behind, id_at_ - behind));
  out.append(id);
  out.append(text().substr(id_at_));
}

std::uint32_t CallAllResults::expect(std::string_view client) {
  return expect(client.empty() ? "{" : R"({"client":)" + to_json(client) + ",", 1);
}

std::uint32_t CallAllResults::expect_node(std::string_view node, std::size_t clients) {
  return expect(R"({"node":)" + to_json(node) + ",", clients);
}

std::uint32_t CallAllResults::expect(std::string begun, std::size_t calls) {
  outcomes_.emplace_back().json = std::move(begun);
  ++left_;
  calls_ += calls;
  load_->calls += calls;
  return static_cast<std::uint32_t>(outcomes_.size() - 1);
}

// An outcome, which has so many bytes; `append` completes its text.
template <class Append>
void CallAllResults::come(Outcome& outcome, std::size_t bytes, const Append& append) noexcept {
  outcome.has_come = true;
  bytes_ += bytes;
  try {
    // Of what is too large together no more is kept.
    if (bytes_ <= bytes_max_) append(outcome.json);
  } catch (const std::bad_alloc&) {
    outcome.json.clear();
  }
  if (--left_ != 0) return;
  if_memory_allows([this] { finish(); });  // else the sink has gone, and answers -32603
}

void CallAllResults::set(std::uint32_t index, std::string_view member, std::string_view json) noexcept {
  Outcome& outcome = outcomes_[index];
  come(outcome, outcome.json.size() + json.size(),
       [&](std::string& text) { text.append("\"").append(member).append("\":").append(json).append("}"); });
}

void CallAllResults::set_all(std::uint32_t index, std::string_view outcomes) noexcept {
  come(outcomes_[index], outcomes.size(), [&](std::string& text) { text = outcomes; });
}

void CallAllResults::set(std::uint32_t index, const Error& error) noexcept {
  std::string text;
  if_memory_allows([&] { text = message::error_text(error); });
  set(index, "error", text.empty() ? std::string_view{kInternalError} : text);
}

void CallAllResults::finish() {
  ReplySink sink = std::move(sink_);
  if (bytes_ > bytes_max_) return sink.error(rpc::reply_too_large());
  std::string all = "[";
  for (Outcome& outcome : outcomes_) {
    if (all.size() > 1) all += ',';
    if (outcome.json.empty()) {
      all.append(R"({"error":)").append(kInternalError).append("}");
    } else {
      all += std::exchange(outcome.json, {});
    }
  }
  all += ']';
  sink.encoded_result(all, {});
}

}  // namespace wirecall::broker
