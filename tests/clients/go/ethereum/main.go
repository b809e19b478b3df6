// go-ethereum's rpc package: calls, errors and batches by HTTP; the same, notifications and subscriptions by WebSocket
// and as JSON over a unix socket, at a server and through a broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func require(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func dataOf(err error) map[string]any {
	var told rpc.DataError
	require(errors.As(err, &told), err)
	data, isObject := told.ErrorData().(map[string]any)
	require(isObject, told.ErrorData())
	return data
}

func codeOf(err error) int {
	var told rpc.Error
	require(errors.As(err, &told), err)
	return told.ErrorCode()
}

func subtractions(count int) ([]rpc.BatchElem, []int) {
	results := make([]int, count)
	batch := make([]rpc.BatchElem, count)
	for i := range batch {
		batch[i] = rpc.BatchElem{Method: "subtract", Args: []any{i, 1}, Result: &results[i]}
	}
	return batch, results
}

func calls(ctx context.Context, client *rpc.Client) {
	var difference int
	must(client.CallContext(ctx, &difference, "subtract", 42, 23))
	require(difference == 19, difference)
	err := client.CallContext(ctx, nil, "fail", 7, "as asked")
	require(codeOf(err) == 7 && err.Error() == "as asked", err)
	err = client.CallContext(ctx, nil, "nothing_of_that_name")
	require(codeOf(err) == -32601, err)
	err = client.CallContext(ctx, nil, "subtract", "x", 1)
	require(codeOf(err) == -32602 && dataOf(err)["got"] == `"x"`, err)

	batch, results := subtractions(100)
	batch[50].Method = "nothing_of_that_name"
	must(client.BatchCallContext(ctx, batch))
	for i, one := range batch {
		if i == 50 {
			require(codeOf(one.Error) == -32601, one.Error)
		} else {
			require(one.Error == nil && results[i] == i-1, i, one.Error)
		}
	}
}

// Of a batch beyond the limit each call is refused; the client would wait for an answer to each until its deadline.
func tooLarge(ctx context.Context, client *rpc.Client) {
	batch, _ := subtractions(1001)
	must(client.BatchCallContext(ctx, batch))
	for _, one := range batch {
		require(codeOf(one.Error) == -32600 && dataOf(one.Error)["limit"] == "batch", one.Error)
	}
}

// The client loses an event that precedes the answer to its call: the first has number 1.
func subscriptions(ctx context.Context, client *rpc.Client) {
	type head struct{ Number string }
	heads := make(chan head)
	others := make(chan head)
	subscription, err := client.EthSubscribe(ctx, heads, "newHeads")
	must(err)
	other, err := client.EthSubscribe(ctx, others, "newHeads")
	must(err)
	for i := 1; i <= 10; i++ {
		for _, of := range []chan head{heads, others} {
			select {
			case one := <-of:
				require(one.Number == fmt.Sprintf("0x%x", i), one)
			case err := <-subscription.Err():
				panic(err)
			case err := <-other.Err():
				panic(err)
			}
		}
	}
	subscription.Unsubscribe()
	require((<-others).Number == "0xb")
	other.Unsubscribe()
	_, err = client.EthSubscribe(ctx, heads, "nothing")
	require(codeOf(err) == -32602 && err.Error() == "no such kind: nothing", err)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	byHTTP, err := rpc.DialContext(ctx, "http://127.0.0.1:"+os.Getenv("TCP_PORT")+"/rpc")
	must(err)
	calls(ctx, byHTTP)
	tooLarge(ctx, byHTTP)
	_, err = byHTTP.EthSubscribe(ctx, make(chan int), "newHeads")
	require(errors.Is(err, rpc.ErrNotificationsUnsupported), err)
	webSocket := "ws://127.0.0.1:" + os.Getenv("TCP_PORT") + "/ws"
	for _, endpoint := range []string{os.Getenv("UNIX_PATH"), os.Getenv("BROKER_PATH"), webSocket} {
		connected, err := rpc.DialContext(ctx, endpoint) // a path is a socket's
		must(err)
		must(connected.Notify(ctx, "subtract", 1, 2)) // by HTTP it takes any empty answer for an error
		calls(ctx, connected)
		subscriptions(ctx, connected)
		tooLarge(ctx, connected)
		calls(ctx, connected)
		connected.Close()
	}
}
