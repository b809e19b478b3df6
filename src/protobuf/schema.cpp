// See schema.hpp. The schema of a type as the root of a document refers to definitions; one that stands within another
// schema, which can hold no definitions, describes each type where it occurs first.
#include "protobuf/schema.hpp"

#include <algorithm>

#include "protobuf/whole_params.hpp"
#include "wirecall/protobuf/message_json.hpp"
#include "wirecall/protobuf/service.hpp"

namespace wirecall::protobuf {
namespace {

using google::protobuf::EnumDescriptor;

constexpr std::string_view kInt64 = R"({"type":"string","format":"int64"})";
constexpr std::string_view kUInt64 = R"({"type":"string","format":"uint64"})";
constexpr std::string_view kNumber = R"({"anyOf":[{"type":"number"},{"enum":["NaN","Infinity","-Infinity"]}]})";
constexpr std::string_view kBase64 = R"({"type":"string","contentEncoding":"base64"})";

class SchemaText {
 public:
  /// `used`: types that have been described, or are to be. `refers`: others are referred to and added to it.
  SchemaText(std::vector<const Descriptor*>& used, bool refers) : used_(used), refers_(refers) {
    writer_->reset(text_);
  }
  [[nodiscard]] std::string take() const { return std::string{text_.view()}; }

  void message(const Descriptor& type) {
    if (has_form_of_its_own(type)) return well_known(type);
    writer_->begin_object(Writer::kUnknownSize);
    word("title", type.full_name());
    word("type", "object");
    writer_->key("properties");
    writer_->begin_object(Writer::kUnknownSize);
    for (int i = 0; i < type.field_count(); ++i) {
      writer_->key(type.field(i)->json_name());
      field(*type.field(i));
    }
    writer_->end_object();
    writer_->key("additionalProperties");
    writer_->boolean(false);
    writer_->end_object();
  }

  void field(const FieldDescriptor& field) {
    if (!field.is_repeated()) return value(field);
    writer_->begin_object(2);
    word("type", field.is_map() ? "object" : "array");
    writer_->key(field.is_map() ? "additionalProperties" : "items");
    value(field.is_map() ? *field.message_type()->map_value() : field);
    writer_->end_object();
  }

  /// Where the type is used.
  void use(const Descriptor& type) {
    if (has_form_of_its_own(type)) return well_known(type);
    const bool described = std::ranges::find(used_, &type) != used_.end();
    if (!described) used_.push_back(&type);
    if (!refers_ && !described) return message(type);
    writer_->begin_object(2);
    if (refers_) {
      word("$ref", "#/$defs/" + name_of(type));
    } else {
      word("title", type.full_name());
      word("type", "object");
    }
    writer_->end_object();
  }

  void array_of(const Descriptor& type) {
    writer_->begin_object(2);
    word("type", "array");
    writer_->key("items");
    use(type);
    writer_->end_object();
  }

  /// Definitions have a dot in their names.
  static std::string name_of(const Descriptor& type) {
    return type.file()->package().empty() ? "protobuf." + type.full_name() : type.full_name();
  }

 private:
  void word(std::string_view keyword, std::string_view text) {
    writer_->key(keyword);
    writer_->string(text);
  }
  void integer(std::int64_t minimum, std::int64_t maximum) {
    writer_->begin_object(3);
    word("type", "integer");
    writer_->key("minimum");
    writer_->integer(minimum);
    writer_->key("maximum");
    writer_->integer(maximum);
    writer_->end_object();
  }
  void enumeration(const EnumDescriptor& type) {
    if (type.full_name() == "google.protobuf.NullValue") return writer_->json(R"({"type":"null"})");
    writer_->begin_object(3);
    word("title", type.full_name());
    word("type", "string");
    writer_->key("enum");
    writer_->begin_array(static_cast<std::size_t>(type.value_count()));
    for (int i = 0; i < type.value_count(); ++i) writer_->string(type.value(i)->name());
    writer_->end_array();
    writer_->end_object();
  }
  void value(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return integer(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
      case FieldDescriptor::CPPTYPE_UINT32: return integer(0, std::numeric_limits<std::uint32_t>::max());
      case FieldDescriptor::CPPTYPE_INT64: return writer_->json(kInt64);
      case FieldDescriptor::CPPTYPE_UINT64: return writer_->json(kUInt64);
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT: return writer_->json(kNumber);
      case FieldDescriptor::CPPTYPE_BOOL: return writer_->json(R"({"type":"boolean"})");
      case FieldDescriptor::CPPTYPE_ENUM: return enumeration(*field.enum_type());
      case FieldDescriptor::CPPTYPE_STRING:
        return writer_->json(field.type() == FieldDescriptor::TYPE_BYTES ? kBase64
                                                                         : std::string_view{R"({"type":"string"})"});
      case FieldDescriptor::CPPTYPE_MESSAGE: return use(*field.message_type());
    }
  }
  void well_known(const Descriptor& type) {
    switch (type.well_known_type()) {
      case Descriptor::WELLKNOWNTYPE_TIMESTAMP: return writer_->json(R"({"type":"string","format":"date-time"})");
      case Descriptor::WELLKNOWNTYPE_DURATION:
        return writer_->json(R"({"type":"string","pattern":"^-?[0-9]+([.][0-9]{1,9})?s$"})");
      case Descriptor::WELLKNOWNTYPE_FIELDMASK: return writer_->json(R"({"type":"string"})");
      case Descriptor::WELLKNOWNTYPE_ANY:
        return writer_->json(R"({"type":"object","properties":{"@type":{"type":"string"}}})");
      case Descriptor::WELLKNOWNTYPE_STRUCT: return writer_->json(R"({"type":"object"})");
      case Descriptor::WELLKNOWNTYPE_LISTVALUE: return writer_->json(R"({"type":"array"})");
      case Descriptor::WELLKNOWNTYPE_VALUE: return writer_->json("{}");
      default: return value(*type.FindFieldByNumber(1));
    }
  }

  std::vector<const Descriptor*>& used_;
  const bool refers_;
  Buffer text_;
  std::unique_ptr<Writer> writer_ = json_codec().writer();
};

/// Of the field of a message: whatever reads it reads the message as a whole.
bool decode_nothing(Reader& reader, void*) { return reader.fail("a message"); }
bool accepts_nothing(Reader&) { return false; }

}  // namespace

std::string json_schema(const google::protobuf::Descriptor& type) {
  std::vector<const Descriptor*> used{&type};
  SchemaText text{used, false};
  text.message(type);
  return text.take();
}

namespace detail {

// The schema that `write` writes under a name, and all types that it needs.
template <class Write>
static Definitions definitions_of(std::deque<std::string>& texts, std::string name, const Write& write) {
  Definitions all;
  std::vector<const Descriptor*> used;
  const auto add = [&](std::string defined, const auto& body) {
    SchemaText text{used, true};
    body(text);
    const std::string& kept = texts.emplace_back(std::move(defined));
    all.push_back({kept, texts.emplace_back(text.take())});
  };
  add(std::move(name), write);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Descriptor& type = *used[i];
    if (SchemaText::name_of(type) == all.front().name) continue;
    add(SchemaText::name_of(type), [&](SchemaText& text) { text.message(type); });
  }
  return all;
}

MethodTypes::MethodTypes(const google::protobuf::MethodDescriptor& of, bool streamed) : method(of) {
  const Descriptor& input = *of.input_type();
  const Descriptor& output = *of.output_type();
  if (streamed) {
    // No params.
  } else if (is_object_form(input) && !has_form_of_its_own(input)) {
    for (int i = 0; i < input.field_count(); ++i) {
      const FieldDescriptor& field = *input.field(i);
      const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated() &&
                              !has_form_of_its_own(*field.message_type());
      const std::string name =
          is_message ? SchemaText::name_of(*field.message_type()) : SchemaText::name_of(input) + '.' + field.name();
      add_argument(field.json_name(),
                   define(definitions_of(texts, name,
                                         [&](SchemaText& text) {
                                           is_message ? text.message(*field.message_type()) : text.field(field);
                                         })),
                   !field.is_required());
    }
  } else if (!is_object_form(input)) {
    add_argument(
        std::string{kWholeValue},
        define(definitions_of(texts, SchemaText::name_of(input), [&](SchemaText& text) { text.message(input); })),
        false);
  }
  signature.result = &define(
      definitions_of(texts, of.server_streaming() ? of.full_name() + ".items" : SchemaText::name_of(output),
                     [&](SchemaText& text) { of.server_streaming() ? text.array_of(output) : text.message(output); }));
  signature.arguments = arguments;
}

const TypeInfo& MethodTypes::define(Definitions own) {
  TypeInfo& info = infos.emplace_back();
  info.definitions = definitions.emplace_back(std::move(own));
  info.name = info.definitions[0].name;
  return info;
}

void MethodTypes::add_argument(std::string name, const TypeInfo& type, bool optional) {
  arguments.push_back({.decode = &decode_nothing,
                       .optional = optional,
                       .rest = false,
                       .accepts = &accepts_nothing,
                       .type = &type,
                       .integer_bytes = 0,
                       .named_only = true});
  names.push_back(std::move(name));
}

}  // namespace detail
}  // namespace wirecall::protobuf
