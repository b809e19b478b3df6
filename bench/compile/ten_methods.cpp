// What a program of ordinary size asks of a compiler: ten methods over five structs through the umbrella header. It is
// compiled, never run; measure.py measures how long that takes and how big the object is.
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "wirecall/wirecall.hpp"

namespace {

struct Point {
  double x = 0;
  double y = 0;
};

struct Address {
  std::string street;
  std::string city;
  std::optional<std::string> postcode;
};

struct Customer {
  std::int64_t id = 0;
  std::string name;
  Address address;
  std::optional<Point> location;
};

struct Card {
  std::string number;
  int expires_year = 0;
};

struct Order {
  std::int64_t id = 0;
  Customer customer;
  std::vector<std::string> items;
  std::map<std::string, double> prices;
  std::variant<std::int64_t, std::string, Card> payment;
};

int subtract(int minuend, int subtrahend) { return minuend - subtrahend; }
double length(const Point& point) { return point.x * point.x + point.y * point.y; }
std::string label(const Address& address) { return address.street + ", " + address.city; }
std::optional<Point> locate(const Customer& customer) { return customer.location; }
double total(const Order& order) {
  double sum = 0;
  for (const auto& [item, price] : order.prices) sum += price;
  return sum;
}
std::vector<Order> orders(std::int64_t customer, std::optional<int> count) {
  std::vector<Order> result(static_cast<std::size_t>(count.value_or(1)));
  for (Order& order : result) order.customer.id = customer;
  return result;
}
std::map<std::string, double> prices(const std::vector<std::string>& items) {
  std::map<std::string, double> result;
  for (const std::string& item : items) result[item] = 1;
  return result;
}
std::variant<std::int64_t, std::string, Card> payment(const Order& order) { return order.payment; }
std::expected<Customer, wirecall::Error> customer(std::int64_t id) {
  if (id < 0) return std::unexpected{wirecall::Error{-1, "no such customer"}};
  return Customer{id, "name", {}, {}};
}
wirecall::Task<Point> middle(Point a, Point b) { co_return Point{(a.x + b.x) / 2, (a.y + b.y) / 2}; }

}  // namespace

void add_methods(wirecall::Registry& registry) {
  registry.method("subtract", subtract, {"minuend", "subtrahend"});
  registry.method("length", length, {"point"});
  registry.method("label", label, {"address"});
  registry.method("locate", locate, {"customer"});
  registry.method("total", total, {"order"});
  registry.method("orders", orders, {"customer", "count"});
  registry.method("prices", prices, {"items"});
  registry.method("payment", payment, {"order"});
  registry.method("customer", customer, {"id"});
  registry.method("middle", middle, {"a", "b"});
}
