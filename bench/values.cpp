// A nested struct of 1 KiB of JSON there and back in each encoding, as a server does it with what a method takes and
// returns: its bytes are checked and decoded by a reader that is kept, and a writer that is kept writes it again.
// Nanoseconds for both together, on one core.
//
//   values            the table
//   values --check    exit status 1 when a bound is exceeded
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers.hpp"
#include "wirecall/packed.hpp"
#include "wirecall/reflect.hpp"

namespace {

struct Address {
  std::string street;
  std::string city;
  std::string country;
  int zip = 0;
};
struct Position {
  double latitude = 0;
  double longitude = 0;
};
struct Item {
  long id = 0;
  std::string name;
  int count = 0;
  double price = 0;
  bool available = false;
  std::vector<std::string> tags;
};
struct Order {
  long id = 0;
  std::string customer;
  Address address;
  Position position;
  std::optional<std::string> note;
  std::vector<Item> items;
  std::vector<int> history;
  bool paid = false;
};

Order make_order() {
  Order order{.id = 1'790'553'012,
              .customer = "Joanna Kowalska-Lindqvist",
              .address = {.street = "Rue de la Montagne 17", .city = "Bruxelles", .country = "BE", .zip = 1000},
              .position = {.latitude = 50.8462807, .longitude = 4.3547273},
              .note = "leave it with the neighbour",
              .items = {},
              .history = {3, 14, 159, 2653, 58979, 323846},
              .paid = true};
  const char* const names[] = {"cordless drill", "box of screws, 4 x 40", "spirit level", "work gloves", "pencil"};
  for (int i = 0; const char* const name : names) {
    order.items.push_back({.id = 40'000 + 7 * i,
                           .name = name,
                           .count = 1 + i * i,
                           .price = 3.25 + 17.45 * i,
                           .available = i % 2 == 0,
                           .tags = {"tools", "workshop", i % 2 == 0 ? "new" : "reduced"}});
    ++i;
  }
  return order;
}

/// What goes there and back by one codec.
class ThereAndBack {
 public:
  explicit ThereAndBack(const wirecall::Codec& codec)
      : codec_(codec), reader_(codec.reader()), writer_(codec.writer()) {
    write(make_order());
    bytes_.append(out_.view());
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_.size(); }
  /// False where what has come back is something else.
  [[nodiscard]] bool run() {
    const std::string_view text = bytes_.padded();
    if (codec_.scan(text, 256).status != wirecall::ScanStatus::complete) return false;
    reader_->reset(text);
    Order order;
    if (!wirecall::decode(*reader_, order)) return false;
    write(order);
    return out_.size() == bytes_.size();
  }
  [[nodiscard]] bool is_same() const { return out_.view() == bytes_.view(); }

 private:
  void write(const Order& order) {
    out_.clear();
    writer_->reset(out_);
    wirecall::encode(*writer_, order);
  }

  const wirecall::Codec& codec_;
  std::unique_ptr<wirecall::Reader> reader_;
  std::unique_ptr<wirecall::Writer> writer_;
  wirecall::Buffer bytes_;
  wirecall::Buffer out_;
};

/// The same in packed form.
class Packed {
 public:
  Packed() { wirecall::append_packed(bytes_, make_order()); }

  [[nodiscard]] std::size_t bytes() const { return bytes_.size(); }
  [[nodiscard]] bool run() {
    Order order;
    if (!wirecall::decode_packed({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}, order))
      return false;
    out_.clear();
    wirecall::append_packed(out_, order);
    return out_.size() == bytes_.size();
  }
  [[nodiscard]] bool is_same() const { return out_.view() == bytes_.view(); }

 private:
  wirecall::Buffer bytes_;
  wirecall::Buffer out_;
};

template <class Way>
double measure(Way& way) {
  constexpr int kCount = 20'000;
  bool good = true;
  const double ns = bench::nanoseconds(kCount, [&] {
    for (int i = 0; i < kCount; ++i) good = way.run() && good;
  });
  if (good && way.is_same()) return ns;
  std::fprintf(stderr, "something else has come back\n");
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  ThereAndBack json{wirecall::json_codec()};
  ThereAndBack msgpack{wirecall::msgpack_codec()};
  ThereAndBack cbor{wirecall::cbor_codec()};
  Packed packed;
  const double json_ns = measure(json);
  const double msgpack_ns = measure(msgpack);
  const double cbor_ns = measure(cbor);
  const double packed_ns = measure(packed);
  constexpr double kMsgpackBound = 0.5;
  constexpr double kPackedBound = 0.25;
  std::printf("%-12s %6zu bytes %8.0f ns\n", "json", json.bytes(), json_ns);
  std::printf("%-12s %6zu bytes %8.0f ns  %5.2f of JSON's  bound %.2f\n", "msgpack", msgpack.bytes(), msgpack_ns,
              msgpack_ns / json_ns, kMsgpackBound);
  std::printf("%-12s %6zu bytes %8.0f ns  %5.2f of JSON's\n", "cbor", cbor.bytes(), cbor_ns, cbor_ns / json_ns);
  std::printf("%-12s %6zu bytes %8.0f ns  %5.2f of JSON's  bound %.2f\n", "packed", packed.bytes(), packed_ns,
              packed_ns / json_ns, kPackedBound);
  const bool met = msgpack_ns <= kMsgpackBound * json_ns && packed_ns <= kPackedBound * json_ns;
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && !met ? 1 : 0;
}
