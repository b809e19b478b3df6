// See call_all_results.hpp.
#include "broker/call_all_results.hpp"

#include <new>

#include "message/error_text.hpp"
#include "rpc/reply.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {
namespace {

constexpr std::string_view kInternalError = R"({"code":-32603,"message":"Internal error"})";

}  // namespace

std::uint32_t CallAllResults::expect(std::string_view client) {
  std::string begun = client.empty() ? "{" : R"({"client":)" + to_json(client) + ",";
  outcomes_.emplace_back().json = std::move(begun);
  ++left_;
  ++load_->calls;
  return static_cast<std::uint32_t>(outcomes_.size() - 1);
}

void CallAllResults::set(std::uint32_t index, std::string_view member, std::string_view json) noexcept {
  Outcome& outcome = outcomes_[index];
  outcome.has_come = true;
  bytes_ += outcome.json.size() + json.size();
  try {
    // Of what is too large together no more is kept.
    if (bytes_ <= bytes_max_) outcome.json.append("\"").append(member).append("\":").append(json).append("}");
  } catch (const std::bad_alloc&) {
    outcome.json.clear();
  }
  if (--left_ != 0) return;
  try {
    finish();
  } catch (const std::bad_alloc&) {
    // The sink has gone, and answers -32603.
  }
}

void CallAllResults::set(std::uint32_t index, const Error& error) noexcept {
  std::string text;
  try {
    text = message::error_text(error);
  } catch (const std::bad_alloc&) {
    text = {};
  }
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
