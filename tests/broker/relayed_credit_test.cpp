// How much credit the broker passes on: by hand calculation.
#include "broker/relayed_credit.hpp"

#include <gtest/gtest.h>

namespace wirecall::broker {
namespace {

constexpr std::size_t kBytes = 1000;

TEST(RelayedCredit, is_passed_on_up_to_the_first_window_as_long_as_no_item_is_known) {
  RelayedCredit credit;
  EXPECT_EQ(credit.due(kBytes), 0U) << "none was granted";
  credit.grant(100);
  EXPECT_EQ(credit.due(kBytes), 64U);
  credit.pass(64);
  EXPECT_EQ(credit.credit, 64U);
  EXPECT_EQ(credit.withheld, 36U);
  EXPECT_EQ(credit.due(kBytes), 0U);
}

TEST(RelayedCredit, fills_half_of_the_bytes_with_items_as_large_as_the_largest) {
  RelayedCredit credit{.credit = 0, .withheld = 5000, .item_bytes = 50};
  EXPECT_EQ(credit.due(kBytes), 10U);
  credit.item_bytes = 600;
  EXPECT_EQ(credit.due(kBytes), 1U) << "one item is always due";
  credit.item_bytes = 1;
  EXPECT_EQ(credit.due(1'000'000), 1024U);
}

TEST(RelayedCredit, is_kept_until_half_of_the_window_is_used_unless_all_of_it_fits) {
  RelayedCredit credit{.credit = 6, .withheld = 100, .item_bytes = 50};
  EXPECT_EQ(credit.due(kBytes), 0U);
  credit.credit = 5;
  EXPECT_EQ(credit.due(kBytes), 5U);
  credit = {.credit = 9, .withheld = 1, .item_bytes = 50};
  EXPECT_EQ(credit.due(kBytes), 1U);
  credit.credit = 11;
  EXPECT_EQ(credit.due(kBytes), 0U) << "items have become larger";
}

TEST(RelayedCredit, has_no_more_than_endless) {
  RelayedCredit credit{.withheld = RelayedCredit::kEndless - 1};
  credit.grant(7);
  EXPECT_EQ(credit.withheld, RelayedCredit::kEndless);
}

}  // namespace
}  // namespace wirecall::broker
