// Peer: N connections with Go's gws; counts messages and prints the count when all have closed.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/lxzan/gws"
)

type counter struct {
	gws.BuiltinEventHandler
	messages atomic.Int64
}

func (c *counter) OnMessage(_ *gws.Conn, message *gws.Message) {
	c.messages.Add(1)
	message.Close()
}

func main() {
	url := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var heard counter
	var all sync.WaitGroup
	for range count {
		socket, _, err := gws.NewClient(&heard, &gws.ClientOption{Addr: url})
		if err != nil {
			log.Fatal(err)
		}
		all.Add(1)
		go func() {
			socket.ReadLoop()
			all.Done()
		}()
	}
	all.Wait()
	fmt.Println(heard.messages.Load())
}
