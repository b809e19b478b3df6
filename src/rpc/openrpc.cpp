// See openrpc.hpp.
#include "rpc/openrpc.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "rpc/access.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::rpc {
namespace {

constexpr std::array<std::string_view, 6> kVersions{"1.2.6", "1.3.0", "1.3.1", "1.3.2", "1.4.0", "1.4.1"};

void write_text(Writer& writer, std::string_view name, std::string_view value) {
  writer.key(name);
  writer.string(value);
}

// A content descriptor's two members that are always there.
void write_descriptor(Writer& writer, std::string_view name, std::string_view schema) {
  write_text(writer, "name", name);
  writer.key("schema");
  writer.json(schema);
}

// The schema with the default as one more keyword. One that is no object has no place for it.
std::string with_default(std::string schema, std::string_view value) {
  if (value.empty() || !schema.ends_with('}')) return schema;
  schema.pop_back();
  if (!schema.ends_with('{')) schema += ',';
  return (schema += "\"default\":").append(value) + '}';
}

// What `json` begins with, and whether it is an object with that member.
bool is_object_with(Reader& reader, std::string_view json, std::string_view member) {
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

bool is_array(Reader& reader, std::string_view json) {
  reader.reset(json);
  return reader.kind() == ValueKind::array;
}

// Readers look behind the end of what they read.
std::string padded(std::string text) {
  text.resize(text.size() + kPaddingBytes);
  return text;
}

void write_described(Writer& writer, Reader& reader, const DescribedMethod& method) {
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
  writer.key("result");
  if (!result_view.empty() && is_object_with(reader, result_view, "schema")) return writer.json(result_view);
  writer.begin_object(Writer::kUnknownSize);
  write_descriptor(writer, "result", result_view.empty() ? std::string_view{"{}"} : result_view);
  writer.end_object();
}

// All positions from there on. OpenRPC has no word for that, so its name, which nobody calls it by, and what is said of
// it tell.
void write_rest(Writer& writer, const Method& method, const detail::ArgumentType& rest) {
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
void write_servers(Writer& writer, const DocumentOrigin& origin) {
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

}  // namespace

void write_params(Writer& writer, const Method& method) {
  writer.key("params");
  writer.begin_array(Writer::kUnknownSize);
  std::size_t position = 0;
  for (const detail::ArgumentType& argument : method.signature().arguments) {
    if (argument.rest) write_rest(writer, method, argument);
    if (argument.gathers()) continue;
    const Param& param = method.params()[position++];
    writer.begin_object(Writer::kUnknownSize);
    write_descriptor(writer, param.name(), with_default(json_schema(*argument.type), param.shown_default()));
    if (!param.doc().empty()) write_text(writer, "description", param.doc());
    writer.key("required");
    writer.boolean(!argument.optional && param.default_json().empty());
    writer.end_object();
  }
  writer.end_array();
}

void write_result(Writer& writer, const Method& method) {
  writer.key("result");
  writer.begin_object(Writer::kUnknownSize);
  write_descriptor(writer, "result", json_schema(*method.signature().result));
  writer.end_object();
}

std::string openrpc_document(const Registry& registry, const std::vector<DescribedMethod>& others,
                             std::string_view version, const Principal* principal, const DocumentOrigin& origin) {
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  const std::unique_ptr<Reader> reader = json_codec().reader();
  writer->reset(text);
  writer->begin_object(Writer::kUnknownSize);
  write_text(*writer, "openrpc", std::ranges::find(kVersions, version) != kVersions.end() ? version : kVersions[0]);
  writer->key("info");
  writer->begin_object(Writer::kUnknownSize);
  write_text(*writer, "title", origin.title);
  write_text(*writer, "version", WIRECALL_VERSION);
  writer->end_object();
  write_servers(*writer, origin);
  writer->key("methods");
  writer->begin_array(Writer::kUnknownSize);

  struct Entry {
    std::string_view name;
    const Method* own;
    const DescribedMethod* other;
  };
  std::vector<Entry> entries;
  for (const auto& method : registry.methods()) {
    if (may_call(principal, method->name())) entries.push_back({method->name(), method.get(), nullptr});
  }
  for (const DescribedMethod& method : others) entries.push_back({method.name, nullptr, &method});
  std::ranges::sort(entries, {}, &Entry::name);
  for (const Entry& entry : entries) {
    writer->begin_object(Writer::kUnknownSize);
    write_text(*writer, "name", entry.name);
    const std::string_view summary = entry.own != nullptr ? entry.own->summary() : entry.other->summary;
    if (!summary.empty()) write_text(*writer, "summary", summary);
    if (entry.own != nullptr) {
      write_params(*writer, *entry.own);
      write_result(*writer, *entry.own);
    } else {
      write_described(*writer, *reader, *entry.other);
    }
    writer->end_object();
  }
  writer->end_array();
  writer->end_object();
  return std::string{text.view()};
}

}  // namespace wirecall::rpc
