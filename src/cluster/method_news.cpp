// See method_news.hpp.
#include "cluster/method_news.hpp"

#include <limits>

#include "broker/methods.hpp"
#include "rpc/listed_methods.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cluster {

std::uint32_t providers_here(const broker::Route& route) noexcept {
  std::uint32_t count = 0;
  for (const auto& provider : route.providers()) count += !provider->ended && !provider->at_node ? 1 : 0;
  return count;
}

void MethodNewsWriter::begin(std::uint32_t providers, std::string_view method) {
  if (!set_.empty()) set_ += ',';
  set_ += '[' + std::to_string(providers) + R"(,{"method":)" + to_json(method);
}

void MethodNewsWriter::add(const broker::Route& route, std::uint32_t providers) {
  const broker::Description& described = route.description;
  if (described.unsubscribes) return;  // it comes with the one that subscribes
  if (providers == 0) return add_gone(route.name());
  begin(providers, route.name());
  const auto member = [this](std::string_view name, std::string_view json) {
    if (!json.empty()) set_.append(",\"").append(name).append("\":").append(json);
  };
  if (!described.summary.empty()) member("summary", to_json(described.summary));
  member("params", described.params_schema);
  member("result", described.result_schema);
  member("input", described.input_schema);
  member("policy", to_json(policy_text(route)));
  const auto here =
      std::ranges::find_if(route.providers(), [](const auto& one) { return !one->ended && !one->at_node; });
  if ((*here)->options.idempotent) member("idempotent", "true");
  if (described.safe) member("safe", "true");
  if (described.subscription) {
    member("subscription", R"({"unsubscribe":)" + to_json(described.subscription->unsubscribe) + R"(,"notification":)" +
                               to_json(described.subscription->notification) + "}");
  }
  set_ += "}]";
}

void MethodNewsWriter::add_own(const Method& method) {
  begin(1, method.name());
  const rpc::ListedMethod listed = rpc::list_own(method);
  if (!listed.summary.empty()) set_ += R"(,"summary":)" + to_json(listed.summary);
  if (method.is_safe()) set_ += R"(,"safe":true)";
  set_ += method.subscription() == nullptr ? R"(},"process"])" : "}]";
}

void MethodNewsWriter::add_gone(std::string_view method) {
  if (!gone_.empty()) gone_ += ',';
  gone_ += to_json(method);
}

void MethodNewsWriter::write(Buffer& out, bool all) const {
  // What goes makes way for what comes.
  out.append(R"({"gone":[)");
  out.append(gone_);
  out.append(R"(],"set":[)");
  out.append(set_);
  out.append(all ? R"(],"all":true})" : "]}");
}

namespace {

// One element of `set`; nothing for one that is none.
bool read_set(Reader& reader, Reader& scratch, const MethodNewsHandlers& handlers) {
  if (!reader.begin_array() || !reader.next_element()) return false;
  std::uint64_t providers = 0;
  if (!reader.read_uint(std::numeric_limits<std::uint32_t>::max(), providers) || providers == 0) return false;
  if (!reader.next_element() || reader.kind() != ValueKind::object) return false;
  broker::Registration registration;
  try {
    registration = broker::read_registration(reader.skip(), scratch);
  } catch (const Error&) {
    return false;
  }
  if (reader.next_element()) {
    std::string_view who;
    registration.options.of_process = reader.read_string(who) && who == "process";
    if (!registration.options.of_process || reader.next_element()) return false;
  }
  registration.options.providers = static_cast<std::uint32_t>(providers);
  handlers.set(std::move(registration));
  return true;
}

bool read_gone(Reader& reader, const MethodNewsHandlers& handlers) {
  std::string_view method;
  if (!reader.read_string(method)) return false;
  handlers.gone(std::string{method});
  return true;
}

// False where one is none; the others are read all the same.
template <class Read>
bool read_each(Reader& reader, Reader& element, const Read& read) {
  if (reader.kind() != ValueKind::array) {
    static_cast<void>(reader.skip());
    return false;
  }
  static_cast<void>(reader.begin_array());
  bool all = true;
  while (reader.next_element()) {
    element.reset(reader.skip());
    all = read(element) && all;
  }
  return all;
}

}  // namespace

bool read_method_news(std::string_view json, const Codec& codec, const MethodNewsHandlers& handlers, bool& all) {
  const Scan scan = codec.scan(json, kDepthMax);
  if (scan.status != ScanStatus::complete || scan.offset != json.size()) return false;
  const std::unique_ptr<Reader> reader = codec.reader();
  const std::unique_ptr<Reader> element = codec.reader();
  const std::unique_ptr<Reader> scratch = codec.reader();
  reader->reset(json);
  if (!reader->begin_object()) return false;
  bool fits = true;
  for (std::string_view name; reader->next_member(name);) {
    if (name == "set") {
      fits = read_each(*reader, *element, [&](Reader& one) { return read_set(one, *scratch, handlers); }) && fits;
    } else if (name == "gone") {
      fits = read_each(*reader, *element, [&](Reader& one) { return read_gone(one, handlers); }) && fits;
    } else if (name == "all") {
      all = reader->skip() == "true";
    } else {
      static_cast<void>(reader->skip());
    }
  }
  return fits;
}

}  // namespace wirecall::cluster
