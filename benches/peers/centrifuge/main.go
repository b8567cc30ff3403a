// Peer: a server on Centrifugo's library; what one publishes to the channel "live", everybody hears.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/centrifugal/centrifuge"
)

func main() {
	node, err := centrifuge.New(centrifuge.Config{LogLevel: centrifuge.LogLevelNone})
	if err != nil {
		log.Fatal(err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		// Nobody is pinged: the crowd only counts.
		return centrifuge.ConnectReply{
			Credentials:    &centrifuge.Credentials{},
			PingPongConfig: &centrifuge.PingPongConfig{PingInterval: -1, PongTimeout: -1},
		}, nil
	})
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(func(_ centrifuge.SubscribeEvent, done centrifuge.SubscribeCallback) {
			done(centrifuge.SubscribeReply{}, nil)
		})
		client.OnPublish(func(_ centrifuge.PublishEvent, done centrifuge.PublishCallback) {
			done(centrifuge.PublishReply{}, nil)
		})
	})
	if err := node.Run(); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{})))
}
