// web is a server that takes its time to come and to go, as servers of people do.
//
// It is ready BOOT after its start. A preStop hook at /prestop makes it not ready and lasts PRESTOP; after SIGTERM it
// goes on answering for TERM. With IGNORE_TERM it never ends by itself. CRASH: it fails that long after its start.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func lasts(name string) time.Duration {
	length, err := time.ParseDuration(os.Getenv(name))
	if err != nil {
		return 0
	}
	return length
}

func say(text string) {
	fmt.Println(time.Now().UTC().Format("15:04:05.000"), os.Getenv("HOSTNAME"), text)
}

func main() {
	var ready atomic.Bool
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, os.Getenv("HOSTNAME"))
	})
	http.HandleFunc("/ready", func(answer http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/prestop", func(http.ResponseWriter, *http.Request) {
		say("preStop")
		ready.Store(false)
		time.Sleep(lasts("PRESTOP"))
	})
	time.AfterFunc(lasts("BOOT"), func() {
		ready.Store(true)
		say("ready")
	})
	if after := lasts("CRASH"); after > 0 {
		time.AfterFunc(after, func() { panic("as it was asked to") })
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM)
	go func() { panic(http.ListenAndServe(":8080", nil)) }()
	<-ending
	say("SIGTERM")
	if os.Getenv("IGNORE_TERM") != "" {
		select {}
	}
	time.Sleep(lasts("TERM"))
}
