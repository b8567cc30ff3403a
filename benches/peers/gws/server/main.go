// Peer: a server with Go's gws and its Broadcaster; what one says, everybody hears.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/lxzan/gws"
)

type crowd struct {
	gws.BuiltinEventHandler
	mutex sync.RWMutex
	all   map[*gws.Conn]struct{}
}

func (c *crowd) OnOpen(socket *gws.Conn) {
	c.mutex.Lock()
	c.all[socket] = struct{}{}
	c.mutex.Unlock()
}

func (c *crowd) OnClose(socket *gws.Conn, _ error) {
	c.mutex.Lock()
	delete(c.all, socket)
	c.mutex.Unlock()
}

func (c *crowd) OnMessage(_ *gws.Conn, message *gws.Message) {
	defer message.Close()
	broadcaster := gws.NewBroadcaster(gws.OpcodeText, message.Bytes())
	defer broadcaster.Close()
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	for socket := range c.all {
		_ = broadcaster.Broadcast(socket)
	}
}

func main() {
	people := &crowd{all: map[*gws.Conn]struct{}{}}
	upgrader := gws.NewUpgrader(people, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := upgrader.Upgrade(w, r)
		if err == nil {
			go socket.ReadLoop()
		}
	})))
}
