#include "cli/arguments.hpp"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace wirecall::cli {
namespace {

/// Files that exist in these tests.
std::expected<std::string, std::string> file_of(const std::string& path) {
  static const std::map<std::string, std::string> files{{"number", "42\n"},
                                                        {"object", "{\"a\": [1, 2]}\n"},
                                                        {"text", "two\nlines\n"},
                                                        {"binary", "\xff\x01"},
                                                        {"bad.npy", "junk"}};
  const auto found = files.find(path);
  if (found == files.end()) return std::unexpected("cannot read the file " + path);
  return found->second;
}

std::string params(const std::vector<std::string>& words) {
  const auto result = params_of(words, file_of);
  return result ? *result : "refused: " + result.error();
}

bool refused(const std::vector<std::string>& words) { return !params_of(words, file_of).has_value(); }

TEST(Params, AreNoneWithoutWords) { EXPECT_EQ(params({}), ""); }

TEST(Params, WordThatIsJsonIsThatValue) {
  EXPECT_EQ(params({"42", "-3", "1.5", "true", "null"}), "[42,-3,1.5,true,null]");
  EXPECT_EQ(params({"[1, 2]", "{\"a\": {}}", "\"x\""}), "[[1, 2],{\"a\": {}},\"x\"]");
}

TEST(Params, NumberKeepsAllItsDigits) {
  EXPECT_EQ(params({"18446744073709551617", "1e400", "0.10"}), "[18446744073709551617,1e400,0.10]");
}

TEST(Params, WordThatIsNoJsonIsAString) {
  EXPECT_EQ(params({"hello", "", "[1,", "01", "+1", "True", "a \"b\""}),
            R"(["hello","","[1,","01","+1","True","a \"b\""])");
}

TEST(Params, OfACallWhoseMethodIsNotUtf8AreRefused) {
  const std::vector<std::string> words{"42"};
  EXPECT_EQ(params_of_call("m\u00e9thode", words, file_of), "[42]");
  const auto refused = params_of_call("m\xe9thode", words, file_of);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), "METHOD is not valid UTF-8: m\xe9thode");
}

TEST(Params, NamedWordsMakeAnObject) {
  EXPECT_EQ(params({"minuend=42", "subtrahend=23"}), R"({"minuend":42,"subtrahend":23})");
  EXPECT_EQ(params({"a=text", "b=[1]", "c=", "d-e.f_1=x=y"}), R"({"a":"text","b":[1],"c":"","d-e.f_1":"x=y"})");
}

TEST(Params, FloatIsOneOnTheWireToo) {
  EXPECT_EQ(params({"x:float=1", "y:float=-20", "z:float=1.5", "e:float=1e3"}),
            R"({"x":1.0,"y":-20.0,"z":1.5,"e":1e3})");
}

TEST(Params, FileThatIsNamedAsAnArrayAndIsNoneIsRefused) {
  EXPECT_TRUE(params({"x=@bad.npy"}).starts_with("refused: x=@bad.npy: is no .npy file"));
  EXPECT_TRUE(params({"@bad.npy"}).starts_with("refused: @bad.npy: is no .npy file"));
  EXPECT_EQ(params({"x:file=bad.npy"}), R"({"x":{"$bytes":"anVuaw=="}})");
}

TEST(Params, WordThatOnlyLooksNamedIsAString) {
  EXPECT_EQ(params({"http://host/?q=1"}), R"(["http://host/?q=1"])");
  EXPECT_EQ(params({"2+2=4", "=x", "a b=c"}), R"(["2+2=4","=x","a b=c"])");
  EXPECT_EQ(params({"\"a=b\""}), R"(["a=b"])");
}

TEST(Params, TypeSaysWhatTheValueIs) {
  EXPECT_EQ(params({"a:str=42", "b:int=42", "c:float=1e3", "d:bool=true", "e:json={\"x\": 1}"}),
            R"({"a":"42","b":42,"c":1e3,"d":true,"e":{"x": 1}})");
}

TEST(Params, BytesAreBase64) {
  EXPECT_EQ(params({"a:bytes=abc"}), R"({"a":{"$bytes":"YWJj"}})");
  EXPECT_EQ(params({"a:bytes=\xff\x01"}), R"({"a":{"$bytes":"/wE="}})");
}

TEST(Params, ValueThatIsNotOfItsTypeIsRefused) {
  EXPECT_EQ(params({"a:int=1e3", "b:int=123456789012345678901234567890"}),
            R"({"a":1e3,"b":123456789012345678901234567890})");
  EXPECT_TRUE(refused({"a:int=1e-3"}));
  EXPECT_TRUE(refused({"a:int=x"}));
  EXPECT_TRUE(refused({"a:int=1.5"}));
  EXPECT_TRUE(refused({"a:int="}));
  EXPECT_TRUE(refused({"a:int=\"1\""}));
  EXPECT_TRUE(refused({"a:float=one"}));
  EXPECT_TRUE(refused({"a:bool=1"}));
  EXPECT_TRUE(refused({"a:json={"}));
}

TEST(Params, UnknownTypeIsRefusedWithThoseThereAre) {
  EXPECT_EQ(params({"a:number=1"}),
            "refused: a:number=1: there is no type number; types are int, float, str, bool, json, bytes and file");
}

TEST(Params, ValueFromAFileIsWhatItHolds) {
  EXPECT_EQ(params({"a=@number", "b=@object", "c=@text"}), R"({"a":42,"b":{"a": [1, 2]},"c":"two\nlines\n"})");
  EXPECT_EQ(params({"a:str=@number", "b:int=@number"}), R"({"a":"42\n","b":42})");
}

TEST(Params, FileTypeIsTheBytesOfTheFile) {
  EXPECT_EQ(params({"a:file=binary"}), R"({"a":{"$bytes":"/wE="}})");
  EXPECT_EQ(params({"a:file=@binary"}), params({"a:bytes=@binary"}));
}

TEST(Params, FileThatCannotBeReadIsRefused) {
  EXPECT_EQ(params({"a=@missing"}), "refused: a=@missing: cannot read the file missing");
  EXPECT_EQ(params({"@missing"}),
            "refused: @missing: cannot read the file missing; for the text itself write it as JSON: "
            "'\"@missing\"'");
}

TEST(Params, TextThatIsNotUtf8IsRefusedExceptAsBytes) {
  EXPECT_TRUE(refused({"\xff"}));
  EXPECT_TRUE(refused({"a=\xff"}));
  EXPECT_TRUE(refused({"a:str=@binary"}));
  EXPECT_EQ(params({"a=@binary"}), R"({"a":{"$bytes":"/wE="}})");
}

TEST(Params, PositionalWordMayBeAFile) {
  EXPECT_EQ(params({"@number", "@text", "@binary", "@", "\"@text\""}),
            R"([42,"two\nlines\n",{"$bytes":"/wE="},"@","@text"])");
}

TEST(Params, PositionalAndNamedWordsDoNotMix) {
  EXPECT_TRUE(refused({"42", "subtrahend=23"}));
  EXPECT_TRUE(refused({"minuend=42", "23"}));
}

TEST(Params, NameGivenTwiceIsRefused) { EXPECT_EQ(params({"a=1", "a:str=2"}), "refused: a:str=2: a is given twice"); }

TEST(Event, OfOneWordIsThatValueOrAnArrayOfIt) {
  const auto event = [](const std::vector<std::string>& words) { return params_of_event(words, file_of).value(); };
  EXPECT_EQ(event({}), "");
  EXPECT_EQ(event({"21.5"}), "[21.5]");
  EXPECT_EQ(event({"hot"}), "[\"hot\"]");
  EXPECT_EQ(event({"[1, [2]]"}), "[1, [2]]");
  EXPECT_EQ(event({" {\"a\": [1]} "}), "{\"a\": [1]}");
  EXPECT_EQ(event({"[1]", "{}"}), "[[1],{}]");
  EXPECT_EQ(event({"a=[1]"}), "{\"a\":[1]}");
  EXPECT_FALSE(params_of_event(std::vector<std::string>{"1", "a=2"}, file_of));
}

TEST(Duration, IsANumberAndAUnit) {
  using std::chrono::milliseconds;
  EXPECT_EQ(duration_of("200ms"), milliseconds{200});
  EXPECT_EQ(duration_of("1.5s"), milliseconds{1500});
  EXPECT_EQ(duration_of("2m"), milliseconds{120'000});
  EXPECT_EQ(duration_of("1h"), milliseconds{3'600'000});
}

TEST(Duration, IsRoundedUpToWholeMilliseconds) { EXPECT_EQ(duration_of("0.2ms"), std::chrono::milliseconds{1}); }

TEST(Duration, ThatIsNoneIsRefused) {
  for (const char* text : {"", "5", "s", "5 s", "5sec", "-1s", "0s", "nans", "1e9h", "100000000h"}) {
    EXPECT_FALSE(duration_of(text).has_value()) << text;
  }
}

TEST(Urls, AreWhatStandsBetweenCommas) {
  using Urls = std::vector<std::string>;
  EXPECT_EQ(urls_of(""), Urls{});
  EXPECT_EQ(urls_of("tcp://a"), Urls{"tcp://a"});
  EXPECT_EQ(urls_of(" tcp://a , tcp://b,,"), (Urls{"tcp://a", "tcp://b"}));
}

}  // namespace
}  // namespace wirecall::cli
