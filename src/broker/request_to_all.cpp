// See request_to_all.hpp.
#include "broker/request_to_all.hpp"

#include <array>
#include <cstdint>

#include "base/decimal.hpp"
#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {
namespace {

struct Carried {
  Member member;
  std::string_view name;
};
// What goes on to each provider as the caller has said it.
constexpr std::array kCarried{Carried{Member::hops, "hops"}, Carried{Member::traceparent, "traceparent"},
                              Carried{Member::tracestate, "tracestate"}};

}  // namespace

RequestToAll::RequestToAll(const Parts& parts, const Received& caller) {
  text_.append("{");
  text_.append(parts.from);
  text_.append(R"("jsonrpc":"2.0","method":)");
  text_.append(to_json(parts.method));
  if (!parts.params.empty()) {
    text_.append(R"(,"params":)");
    params_at_ = text_.size();
    Splice params{parts.params};
    if (!parts.progress_token.empty()) params.remove(parts.progress_token);
    params.append_to(text_);
    params_bytes_ = text_.size() - params_at_;
  }
  if (parts.timed) {
    text_.append(R"(,"timeout_ms":)");
    time_at_ = text_.size();
  }
  for (const auto& [member, name] : kCarried) {
    if (!caller.has(member)) continue;
    text_.append(",\"");
    text_.append(name);
    text_.append("\":");
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

}  // namespace wirecall::broker
