// See openrpc.hpp.
#include "rpc/openrpc.hpp"

#include <algorithm>

#include "rpc/access.hpp"
#include "wirecall/packing.hpp"

namespace wirecall::rpc {

constexpr std::array<std::string_view, 6> kVersions{"1.2.6", "1.3.0", "1.3.1", "1.3.2", "1.4.0", "1.4.1"};

static void write_text(Writer& writer, std::string_view name, std::string_view value) {
  writer.key(name);
  writer.string(value);
}

// A content descriptor's two members that are always there.
static void write_descriptor(Writer& writer, std::string_view name, std::string_view schema) {
  write_text(writer, "name", name);
  writer.key("schema");
  writer.json(schema);
}

// The schema with the default as one more keyword. One that is no object has no place for it.
static std::string with_default(std::string schema, std::string_view value) {
  if (value.empty() || !schema.ends_with('}')) return schema;
  schema.pop_back();
  if (!schema.ends_with('{')) schema += ',';
  return (schema += "\"default\":").append(value) + '}';
}

// What `json` begins with, and whether it is an object with that member.
static bool is_object_with(Reader& reader, std::string_view json, std::string_view member) {
  reader.reset(json);
  if (reader.kind() != ValueKind::object) return false;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const bool found = name == member;
    static_cast<void>(reader.skip());
    if (found) return true;
  }
  return false;
}

static bool is_array(Reader& reader, std::string_view json) {
  reader.reset(json);
  return reader.kind() == ValueKind::array;
}

// Readers look behind the end of what they read.
static std::string padded(std::string text) {
  text.resize(text.size() + kPaddingBytes);
  return text;
}

static void write_input(Writer& writer, std::string_view schema) {
  writer.key("x-input");
  writer.begin_object(1);
  writer.key("schema");
  writer.json(schema);
  writer.end_object();
}

static void write_described(Writer& writer, Reader& reader, const DescribedMethod& method) {
  const std::string params = padded(method.params);
  const std::string_view params_view = std::string_view{params}.substr(0, method.params.size());
  writer.key("params");
  if (params_view.empty() || !is_array(reader, params_view)) {
    writer.begin_array(Writer::kUnknownSize);
    if (!params_view.empty()) {
      writer.begin_object(Writer::kUnknownSize);
      write_descriptor(writer, "params", params_view);
      writer.end_object();
    }
    writer.end_array();
  } else {
    writer.json(params_view);
  }
  const std::string result = padded(method.result);
  const std::string_view result_view = std::string_view{result}.substr(0, method.result.size());
  if (!method.input.empty()) {
    const std::string input = padded(method.input);
    write_input(writer, std::string_view{input}.substr(0, method.input.size()));
  }
  if (!method.subscription.empty()) {
    const std::string names = padded(method.subscription);
    writer.key("x-subscription");
    writer.json(std::string_view{names}.substr(0, method.subscription.size()));
  }
  writer.key("result");
  if (!result_view.empty() && is_object_with(reader, result_view, "schema")) return writer.json(result_view);
  writer.begin_object(Writer::kUnknownSize);
  write_descriptor(writer, "result", result_view.empty() ? std::string_view{"{}"} : result_view);
  writer.end_object();
}

// All positions from there on. OpenRPC has no word for that, so its name, which nobody calls it by, and what is said of
// it tell.
static void write_rest(Writer& writer, const Method& method, const detail::ArgumentType& rest) {
  std::string name = "rest";
  while (std::ranges::find(method.params(), name, &Param::name) != method.params().end()) name += '_';
  writer.begin_object(Writer::kUnknownSize);
  write_descriptor(writer, name, json_schema(*rest.type));
  write_text(writer, "description", "any number of further positions, each of this schema");
  writer.key("required");
  writer.boolean(false);
  writer.key("x-rest");
  writer.boolean(true);
  writer.end_object();
}

// Tools take a document without any for one of a server at localhost.
static void write_servers(Writer& writer, const DocumentOrigin& origin) {
  if (origin.urls.empty()) return;
  writer.key("servers");
  writer.begin_array(origin.urls.size());
  for (const std::string& url : origin.urls) {
    writer.begin_object(2);
    write_text(writer, "name", origin.title);
    write_text(writer, "url", url);
    writer.end_object();
  }
  writer.end_array();
}

static void write_comes_back(Writer& writer) {
  writer.key("x-out");
  writer.boolean(true);
}

// Of a method of which parameters come back: {"return", "out": {name: value}}.
static std::string schema_with_out(const Method& method) {
  std::vector<MemberInfo> out;
  const auto arguments = method.signature().arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].give_back != nullptr)
      out.push_back({.name = method.params()[i].name(), .type = arguments[i].type, .about = nullptr, .required = true});
  }
  const TypeInfo out_type{.kind = TypeKind::object, .name = "out", .members = out};
  const MemberInfo members[] = {
      {.name = "return", .type = method.signature().result, .about = nullptr, .required = true},
      {.name = "out", .type = &out_type, .about = nullptr, .required = true}};
  return json_schema({.kind = TypeKind::object, .name = "result", .members = members});
}

// Of a result that is described whole.
static bool is_in_out(const detail::Signature& signature, std::string_view name) {
  if (!signature.result_has_out) return false;
  const auto out = std::ranges::find(signature.result->members, "out", &MemberInfo::name);
  return out != signature.result->members.end() &&
         std::ranges::find(out->type->members, name, &MemberInfo::name) != out->type->members.end();
}

void write_params(Writer& writer, const Method& method) {
  writer.key("params");
  writer.begin_array(Writer::kUnknownSize);
  std::size_t named = 0;
  for (const detail::ArgumentType& argument : method.signature().arguments) {
    if (argument.rest) write_rest(writer, method, argument);
    if (argument.gathers()) continue;
    const Param& param = method.params()[named++];
    if (!argument.sent) continue;
    writer.begin_object(Writer::kUnknownSize);
    write_descriptor(writer, param.name(), with_default(json_schema(*argument.type), param.shown_default()));
    if (!param.description().empty()) write_text(writer, "description", param.description());
    writer.key("required");
    writer.boolean(!argument.optional && param.default_json().empty());
    if (argument.give_back != nullptr || is_in_out(method.signature(), param.name())) write_comes_back(writer);
    writer.end_object();
  }
  writer.end_array();
}

void write_subscription(Writer& writer, const Method& method) {
  const SubscriptionNames* const names = method.subscription();
  if (names == nullptr) return;
  writer.key("x-subscription");
  writer.begin_object(Writer::kUnknownSize);
  write_text(writer, "unsubscribe", names->unsubscribe);
  write_text(writer, "notification", names->notification);
  writer.key("schema");
  writer.json(json_schema(*method.signature().event));
  writer.end_object();
}

// What a packed call has to be (docs/packed.md, "In messages"). It stands in the result's descriptor, which a broker
// takes from a provider as it is.
static void write_layouts(Writer& writer, const detail::Packing& packing) {
  writer.key("x-packed");
  writer.begin_object(2);
  write_text(writer, "params", packing.params().text());
  write_text(writer, "result", packing.result.layout().text());
  writer.end_object();
}

void write_result(Writer& writer, const Method& method) {
  writer.key("result");
  writer.begin_object(Writer::kUnknownSize);
  const auto arguments = method.signature().arguments;
  const bool gives_back =
      std::ranges::any_of(arguments, [](const auto& argument) { return argument.give_back != nullptr; });
  write_descriptor(writer, "result", gives_back ? schema_with_out(method) : json_schema(*method.signature().result));
  if (gives_back || method.signature().result_has_out) write_comes_back(writer);
  if (method.packing() != nullptr) write_layouts(writer, *method.packing());
  writer.end_object();
}

OpenRpcDocument::OpenRpcDocument(LoopContext& loop_context, const Registry& registry, const MethodSource* others,
                                 std::string_view version, Asker asker, const DocumentOrigin& origin)
    : loop_context_(&loop_context),
      registry_(&registry),
      others_(others),
      asker_(std::move(asker)),
      writer_(json_codec().writer()),
      reader_(json_codec().reader()) {
  writer_->reset(text_);
  writer_->begin_object(Writer::kUnknownSize);
  write_text(*writer_, "openrpc", std::ranges::find(kVersions, version) != kVersions.end() ? version : kVersions[0]);
  writer_->key("info");
  writer_->begin_object(Writer::kUnknownSize);
  write_text(*writer_, "title", origin.title);
  write_text(*writer_, "version", WIRECALL_VERSION);
  writer_->end_object();
  write_servers(*writer_, origin);
  writer_->key("methods");
  writer_->begin_array(Writer::kUnknownSize);
}

bool OpenRpcDocument::write_piece() {
  const Method* const own = next_own(*loop_context_, *registry_, after_);
  DescribedMethod other;
  const bool any_other = others_ != nullptr && others_->next_method(after_, asker_.principal, other);
  if (own == nullptr && !any_other) {
    writer_->end_array();
    writer_->end_object();
    return false;
  }
  if (any_other && (own == nullptr || other.name < own->name())) {
    after_ = other.name;
    if (other.hidden) return true;
    begin_method(other.name, other.summary);
    write_described(*writer_, *reader_, other);
  } else {
    after_ = own->name();
    if (!may_call(asker_.principal, after_)) return true;
    begin_method(after_, own->summary());
    write_params(*writer_, *own);
    write_result(*writer_, *own);
    if (const TypeInfo* const input = own->signature().input) write_input(*writer_, json_schema(*input));
    write_subscription(*writer_, *own);
  }
  writer_->end_object();
  return true;
}

void OpenRpcDocument::begin_method(std::string_view name, std::string_view summary) {
  writer_->begin_object(Writer::kUnknownSize);
  write_text(*writer_, "name", name);
  if (!summary.empty()) write_text(*writer_, "summary", summary);
}

}  // namespace wirecall::rpc
