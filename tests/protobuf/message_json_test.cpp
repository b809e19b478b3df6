// Messages as proto3 JSON. What is expected comes from the specification of proto3's JSON mapping, or from protobuf's
// own util/json_util.
#include "wirecall/protobuf/message_json.hpp"

#include <cmath>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <limits>

#include "kinds.pb.h"
#include "services.pb.h"

namespace {

using google::protobuf::util::MessageDifferencer;

std::string written(const google::protobuf::Message& message) {
  wirecall::Buffer text;
  const auto writer = wirecall::json_codec().writer();
  writer->reset(text);
  wirecall::protobuf::write(*writer, message);
  return writer->failed() ? "! " + writer->failure() : std::string{text.view()};
}

template <class M>
M read_as(std::string_view json) {
  auto message = wirecall::from_json<M>(json);
  EXPECT_TRUE(message) << json << message.error().data();
  return message ? std::move(*message) : M{};
}

/// The error's data; empty where the text is one.
template <class M>
std::string refusal(std::string_view json) {
  const auto message = wirecall::from_json<M>(json);
  return message ? "" : std::to_string(message.error().code()) + ' ' + message.error().data();
}

template <class M>
std::string there_and_back(std::string_view json) {
  return written(read_as<M>(json));
}

TEST(MessageJson, scalars_have_the_forms_of_proto3) {
  kinds::Scalars all;
  all.set_small_int(-1);
  all.set_big_int(std::numeric_limits<std::int64_t>::min());
  all.set_small_unsigned(4'294'967'295);
  all.set_big_unsigned(std::numeric_limits<std::uint64_t>::max());
  all.set_zigzag(-5);
  all.set_fixed(6);
  all.set_single(1.5F);
  all.set_number(0.1);
  all.set_flag(true);
  all.set_text("h\"i");
  all.set_data("\xFF\xFE");
  all.set_color(kinds::RED);
  all.set_renamed("x");
  EXPECT_EQ(written(all),
            R"({"smallInt":-1,"bigInt":"-9223372036854775808","smallUnsigned":4294967295,)"
            R"("bigUnsigned":"18446744073709551615","zigzag":"-5","fixed":"6","single":1.5,"number":0.1,"flag":true,)"
            R"("text":"h\"i","data":"//4=","color":"RED","otherName":"x"})");
  EXPECT_TRUE(MessageDifferencer::Equals(read_as<kinds::Scalars>(written(all)), all));
}

TEST(MessageJson, both_forms_of_numbers_and_both_names_are_read) {
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"bigInt":9007199254740993})").big_int(), 9'007'199'254'740'993);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"big_int":"9007199254740993"})").big_int(), 9'007'199'254'740'993);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"smallInt":"7"})").small_int(), 7);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"smallInt":1e2})").small_int(), 100);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"smallInt":"1e2"})").small_int(), 100);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"number":"1.5"})").number(), 1.5);
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"renamed":"a"})").renamed(), "a");
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"otherName":"a"})").renamed(), "a");
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"color":1})").color(), kinds::RED);
  EXPECT_EQ(there_and_back<kinds::Scalars>(R"({"color":7})"), R"({"color":7})");
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"data":"__4"})").data(), "\xFF\xFE");
  EXPECT_EQ(read_as<kinds::Scalars>(R"({"data":{"$bytes":"//4="}})").data(), "\xFF\xFE");
}

TEST(MessageJson, what_json_has_no_number_for_is_a_string) {
  kinds::Scalars all;
  all.set_number(std::numeric_limits<double>::infinity());
  all.set_single(-std::numeric_limits<float>::infinity());
  EXPECT_EQ(written(all), R"({"single":"-Infinity","number":"Infinity"})");
  EXPECT_EQ(there_and_back<kinds::Scalars>(written(all)), written(all));
  EXPECT_TRUE(std::isnan(read_as<kinds::Scalars>(R"({"number":"NaN"})").number()));
}

TEST(MessageJson, what_does_not_fit_is_refused_with_its_place) {
  EXPECT_EQ(refusal<kinds::Scalars>(R"({"smallInt":2147483648})").substr(0, 32), R"(-32602 {"loc":["smallInt"],"expe)");
  for (const std::string_view json : {
           R"({"smallInt":"2147483648"})",
           R"({"smallInt":1.5})",
           R"({"smallInt":"1.5"})",
           R"({"smallInt":""})",
           R"({"smallInt":" 1"})",
           R"({"smallInt":"+1"})",
           R"({"smallInt":true})",
           R"({"smallUnsigned":-1})",
           R"({"bigInt":"9223372036854775808"})",
           R"({"bigUnsigned":"18446744073709551616"})",
           R"({"flag":"true"})",
           R"({"flag":1})",
           R"({"text":1})",
           R"({"data":"%"})",
           R"({"color":"BLUE"})",
           R"({"color":1.5})",
           R"({"single":1e300})",
           R"({"number":"inf"})",
           R"({"number":"-nan"})",
           R"({"number":"infinity"})",
           R"({"number":"0x1"})",
           R"({"unknown":1})",
           R"({"text":"a","text":"b"})",
           R"({"otherName":"a","renamed":"b"})",
           R"([])",
           R"("x")",
           "1",
       })
    EXPECT_NE(refusal<kinds::Scalars>(json), "") << json;
  EXPECT_EQ(refusal<kinds::Scalars>(R"({"smalInt":1})"),
            R"(-32602 {"loc":["smalInt"],"expected":"nothing","got":"1","did_you_mean":"smallInt"})");
}

TEST(MessageJson, presence_is_kept) {
  EXPECT_EQ(there_and_back<kinds::Presence>(R"({"maybe":0,"plain":0})"), R"({"maybe":0})");
  EXPECT_EQ(there_and_back<kinds::Presence>(R"({"maybe":null,"plain":null,"word":null})"), "{}");
  EXPECT_EQ(there_and_back<kinds::Presence>(R"({"word":""})"), R"({"word":""})");
  EXPECT_EQ(there_and_back<kinds::Presence>(R"({"nothing":null})"), R"({"nothing":null})");
  EXPECT_EQ(there_and_back<kinds::Presence>(R"({"word":null,"number":0})"), R"({"number":0})");
  EXPECT_NE(refusal<kinds::Presence>(R"({"word":"a","number":1})"), "");
}

TEST(MessageJson, lists_and_maps) {
  const std::string json = R"({"numbers":["1","2"],"messages":[{"smallInt":1},{}],"byName":{"a":1},)"
                           R"("byNumber":{"-3":{"text":"x"}},"byFlag":{"true":"yes"},"colors":["RED",7]})";
  EXPECT_EQ(there_and_back<kinds::Containers>(json), json);
  EXPECT_EQ(there_and_back<kinds::Containers>(R"({"numbers":null,"byName":null})"), "{}");
  EXPECT_NE(refusal<kinds::Containers>(R"({"numbers":[null]})"), "");
  EXPECT_NE(refusal<kinds::Containers>(R"({"byName":{"a":null}})"), "");
  EXPECT_NE(refusal<kinds::Containers>(R"({"byName":{"a":1,"a":2}})"), "");
  EXPECT_NE(refusal<kinds::Containers>(R"({"byNumber":{"x":{}}})"), "");
  EXPECT_NE(refusal<kinds::Containers>(R"({"byFlag":{"1":"x"}})"), "");
  EXPECT_EQ(refusal<kinds::Containers>(R"({"messages":[{},{"smallInt":"x"}]})").substr(0, 40),
            R"(-32602 {"loc":["messages",1,"smallInt"],)");
}

TEST(MessageJson, well_known_types_have_their_own_forms) {
  for (const std::string_view json : {
           R"({"at":"2024-05-06T07:08:09Z"})",
           R"({"at":"0001-01-01T00:00:00Z"})",
           R"({"at":"9999-12-31T23:59:59.999999999Z"})",
           R"({"at":"1969-12-31T23:59:59.900Z"})",
           R"({"lasted":"1.500s"})",
           R"({"lasted":"-0.000000001s"})",
           R"({"lasted":"-315576000000s"})",
           R"({"document":{}})",
           R"({"document":{"a":[1,"x",null,true,{"b":1.5}]}})",
           R"({"anything":null})",
           R"({"anything":[[],{}]})",
           R"({"list":[1,null]})",
           R"({"wrapped":"0"})",
           R"({"mask":"a,bC.dE"})",
           R"({"empty":{}})",
           R"({"word":""})",
           R"({"data":"//4="})",
           R"({"packed":{"@type":"type.googleapis.com/kinds.Tree","value":7}})",
           R"({"packed":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}})",
           R"({"packed":{"@type":"a/google.protobuf.Any","value":{"@type":"b/kinds.Tree","next":{"value":1}}}})",
           R"({"packed":{}})",
       })
    EXPECT_EQ(there_and_back<kinds::WellKnown>(json), json);
}

TEST(MessageJson, values_outside_a_well_known_type_are_refused) {
  for (const std::string_view json : {
           R"({"at":"0000-12-31T23:59:59Z"})",
           R"({"at":"x"})",
           R"({"at":1})",
           R"({"lasted":"1"})",
           R"({"lasted":"315576000001s"})",
           R"({"lasted":".5s"})",
           R"({"lasted":"1.s"})",
           R"({"lasted":"+1s"})",
           R"({"lasted":"--1s"})",
           R"({"lasted":"1.0000000001s"})",
           R"({"lasted":"99999999999999999999s"})",
           R"({"lasted":1})",
           R"({"mask":"a_b"})",
           R"({"document":[]})",
           R"({"list":{}})",
           R"({"empty":{"a":1}})",
           R"({"wrapped":{"value":1}})",
           R"({"packed":{"value":1}})",
           R"({"packed":{"@type":"kinds.Tree"}})",
           R"({"packed":{"@type":"a/kinds.Nothing"}})",
           R"({"packed":{"@type":"a/kinds.Tree","x":1}})",
           R"({"packed":{"@type":"a/google.protobuf.Duration"}})",
           R"({"packed":{"@type":"a/google.protobuf.Duration","value":"1s","value":"1s"}})",
           R"({"packed":[]})",
           R"({"packed":{"@type":"a/kinds.Tree","@type":"a/kinds.Tree"}})",
           R"({"packed":{"value":1,"@type":"a/kinds.Tree","@type":"a/kinds.Tree"}})",
           R"({"packed":{"@type":"a/google.protobuf.Duration","@type":"a/kinds.Tree","value":"1s"}})",
           R"({"mask":","})",
           R"({"mask":"a,"})",
           R"({"mask":"a,,b"})",
       })
    EXPECT_NE(refusal<kinds::WellKnown>(json), "") << json;
  kinds::WellKnown wrong;
  wrong.mutable_at()->set_seconds(-62'135'596'801);
  EXPECT_EQ(written(wrong), "! a google.protobuf.Timestamp lies outside the years 1 to 9999");
  wrong.Clear();
  wrong.mutable_lasted()->set_seconds(1);
  wrong.mutable_lasted()->set_nanos(-1);
  EXPECT_EQ(written(wrong)[0], '!');
  wrong.Clear();
  for (const char* const path : {"", "a,b", "aB", "a__b", "a_1", "a_"}) {
    wrong.Clear();
    wrong.mutable_mask()->add_paths(path);
    EXPECT_EQ(written(wrong)[0], '!') << path;
  }
  wrong.Clear();
  wrong.mutable_anything();
  EXPECT_EQ(written(wrong), "! a google.protobuf.Value holds no value");
  wrong.Clear();
  wrong.mutable_packed()->set_type_url("a/no.such.Type");
  EXPECT_EQ(written(wrong), "! a google.protobuf.Any holds a type that is neither linked nor registered");
  wrong.mutable_packed()->set_type_url("a/kinds.Tree");
  wrong.mutable_packed()->set_value("\xFF");
  EXPECT_EQ(written(wrong),
            "! a google.protobuf.Any holds no message of its type, or one that nests deeper than 100 levels");
}

TEST(MessageJson, the_type_of_an_any_may_stand_anywhere_in_it) {
  EXPECT_EQ(there_and_back<kinds::WellKnown>(R"({"packed":{"value":7,"children":[],"@type":"a/kinds.Tree"}})"),
            R"({"packed":{"@type":"a/kinds.Tree","value":7}})");
  // Of Any in Any each level is read twice, which would take time without end: that is bounded.
  const auto packed = [](int levels) {
    std::string json = R"({"value":1,"@type":"a/kinds.Tree"})";
    for (int i = 1; i < levels; ++i) json = R"({"value":)" + json + R"(,"@type":"a/google.protobuf.Any"})";
    return R"({"packed":)" + json + '}';
  };
  EXPECT_EQ(refusal<kinds::WellKnown>(packed(20)), "");
  EXPECT_NE(refusal<kinds::WellKnown>(packed(90)), "");
}

TEST(MessageJson, a_registered_type_is_known_to_any) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("late.proto");
  file.set_package("late");
  auto& type = *file.add_message_type();
  type.set_name("Late");
  auto& field = *type.add_field();
  field.set_name("count");
  field.set_number(1);
  field.set_type(google::protobuf::FieldDescriptorProto::TYPE_INT32);
  field.set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
  static google::protobuf::DescriptorPool pool;
  static google::protobuf::DynamicMessageFactory factory{&pool};
  const auto* const built = pool.BuildFile(file);
  const std::string_view json = R"({"packed":{"@type":"a/late.Late","count":1}})";
  EXPECT_NE(refusal<kinds::WellKnown>(json), "");
  wirecall::protobuf::register_type(*factory.GetPrototype(built->message_type(0)));
  EXPECT_EQ(there_and_back<kinds::WellKnown>(json), json);
}

template <class Nest>
std::string nested(int levels, Nest nest) {
  std::string json = "{}";
  for (int i = 1; i < levels; ++i) json = nest(json);
  return json;
}

TEST(MessageJson, a_hundred_levels_are_the_most) {
  const auto next = [](const std::string& inner) { return R"({"next":)" + inner + '}'; };
  EXPECT_EQ(there_and_back<kinds::Tree>(nested(100, next)), nested(100, next));
  EXPECT_NE(refusal<kinds::Tree>(nested(101, next)), "");
  kinds::Tree deep;
  kinds::Tree* last = &deep;
  for (int i = 1; i < 100; ++i) last = last->mutable_next();
  EXPECT_EQ(written(deep), nested(100, next));
  last->mutable_next();
  EXPECT_EQ(written(deep), "! a protobuf message nests deeper than 100 levels");
  // What an Any holds counts as well.
  const auto packed = [](const std::string& inner) {
    return R"({"@type":"a/google.protobuf.Any","value":)" + inner + '}';
  };
  EXPECT_EQ(refusal<google::protobuf::Any>(nested(100, packed)), "");
  EXPECT_NE(refusal<google::protobuf::Any>(nested(101, packed)), "");
  google::protobuf::Any any;
  for (int i = 1; i < 101; ++i) {
    google::protobuf::Any outer;
    outer.set_type_url("a/google.protobuf.Any");
    outer.set_value(any.SerializeAsString());
    any = outer;
  }
  EXPECT_EQ(written(any), "! a protobuf message nests deeper than 100 levels");
}

TEST(MessageJson, entries_of_maps_are_levels_so_that_protobuf_parses_what_an_any_holds) {
  const auto nest = [](const std::string& inner) { return R"({"a":)" + inner + '}'; };
  const auto packed = [&](int levels) {
    return R"({"@type":"a/google.protobuf.Struct","value":)" + nested(levels, nest) + '}';
  };
  EXPECT_EQ(there_and_back<google::protobuf::Any>(packed(33)), packed(33));
  google::protobuf::Struct held;
  EXPECT_TRUE(read_as<google::protobuf::Any>(packed(33)).UnpackTo(&held));
  EXPECT_NE(refusal<google::protobuf::Any>(packed(34)), "");
  EXPECT_EQ(refusal<google::protobuf::Struct>(nested(34, nest)), "");
  EXPECT_NE(refusal<google::protobuf::Struct>(nested(35, nest)), "");
}

TEST(MessageJson, it_is_the_same_in_messagepack) {
  const auto all = read_as<kinds::Containers>(R"({"numbers":["1"],"byNumber":{"5":{"data":"//4=","number":"NaN"}}})");
  const auto bytes = wirecall::to_msgpack(all);
  const auto back = wirecall::from_msgpack<kinds::Containers>(bytes);
  ASSERT_TRUE(back) << back.error().data();
  EXPECT_EQ(written(*back), written(all));
}

TEST(MessageJson, protobufs_own_json_is_read_and_written_alike) {
  for (
      const std::string_view json : {
          R"({"numbers":["1","-2"],"messages":[{"single":0.1,"number":1e+100},{"text":"\u00e9\u0001"}],"colors":["RED"]})",
          R"({"byNumber":{"9":{"data":"AAECAw==","flag":true}}})",
      }) {
    kinds::Containers theirs;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(std::string{json}, &theirs).ok());
    EXPECT_TRUE(MessageDifferencer::Equals(read_as<kinds::Containers>(json), theirs)) << json;
    kinds::Containers back;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(written(theirs), &back).ok());
    EXPECT_TRUE(MessageDifferencer::Equals(back, theirs)) << written(theirs);
  }
}

TEST(MessageJson, a_string_that_is_not_utf8_cannot_be_written) {
  kinds::Scalars wrong;
  wrong.set_text("\xFF");
  EXPECT_EQ(written(wrong)[0], '!');
}

TEST(MessageJson, a_schema_describes_each_type_once) {
  EXPECT_EQ(wirecall::protobuf::json_schema(*kinds::Tree::descriptor()),
            R"({"title":"kinds.Tree","type":"object","properties":{)"
            R"("value":{"type":"integer","minimum":-2147483648,"maximum":2147483647},)"
            R"("children":{"type":"array","items":{"title":"kinds.Tree","type":"object"}},)"
            R"("next":{"title":"kinds.Tree","type":"object"}},"additionalProperties":false})");
}

}  // namespace
