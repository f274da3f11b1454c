// The process that holds a pod's namespaces: it waits for its end and buries orphans.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	orphans := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(orphans, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-orphans:
			bury()
		}
	}
}

// bury collects every child that has ended; one signal can stand for several of them.
func bury() {
	for {
		child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if child <= 0 || err != nil {
			return
		}
	}
}
