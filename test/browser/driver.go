package browser

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// driver is the node program. One drives all browsers of the test process, since to start it takes half a second of
// processor time. It ends, and all browsers with it, when its stdin is closed: with the process, however that ends.
type driver struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	next    int
	waiting map[int]chan response
	ended   error // set when the program is gone
}

type command struct {
	ID       int      `json:"id"`
	Do       string   `json:"do"`
	Browser  int      `json:"browser,omitempty"`
	Page     int      `json:"page,omitempty"`
	Frame    int      `json:"frame,omitempty"`
	URL      string   `json:"url,omitempty"`
	Width    int      `json:"width,omitempty"`
	Height   int      `json:"height,omitempty"`
	Selector string   `json:"selector,omitempty"`
	Label    string   `json:"label,omitempty"`
	Code     string   `json:"code,omitempty"`
	File     string   `json:"file,omitempty"`
	Flags    []string `json:"flags,omitempty"`

	Scriptless bool `json:"scriptless,omitempty"`
}

type response struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// responseWait bounds one command: a page that hangs fails its test, not the run.
const responseWait = 2 * time.Minute

// shared is the driver of all browsers of this process.
//
//nolint:gochecknoglobals // one program for the test process
var shared struct {
	sync.Mutex
	driver *driver
}

// sharedDriver starts the driver in dir, unless it runs.
func sharedDriver(dir string) (*driver, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.driver != nil && shared.driver.runs() {
		return shared.driver, nil
	}
	var err error
	if shared.driver, err = startDriver(dir); err != nil {
		return nil, fmt.Errorf("start browser driver: %w", err)
	}
	return shared.driver, nil
}

func startDriver(dir string) (*driver, error) {
	d := &driver{waiting: map[int]chan response{}}
	d.cmd = exec.Command("node", "driver.mjs") //nolint:noctx // it ends with the process
	d.cmd.Dir = dir
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err = d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.read(out)
	return d, nil
}

// read hands each response to who waits for it, and an error to all when the program ends.
func (d *driver) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			err = cmp.Or(d.cmd.Wait(), err)
			d.mu.Lock()
			d.ended = fmt.Errorf("browser driver has ended: %w", err)
			for id, c := range d.waiting {
				c <- response{ID: id, Error: d.ended.Error()}
				delete(d.waiting, id)
			}
			d.mu.Unlock()
			return
		}
		var a response
		if json.Unmarshal(line, &a) != nil {
			continue // something that a library printed
		}
		d.mu.Lock()
		if c, ok := d.waiting[a.ID]; ok {
			c <- a
			delete(d.waiting, a.ID)
		}
		d.mu.Unlock()
	}
}

// runs reports whether the program still takes commands.
func (d *driver) runs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended == nil
}

func (d *driver) wait(id int, c <-chan response) (json.RawMessage, error) {
	select {
	case a := <-c:
		if a.Error != "" {
			return nil, errors.New(a.Error)
		}
		return a.Value, nil
	case <-time.After(responseWait):
		d.mu.Lock()
		delete(d.waiting, id)
		d.mu.Unlock()
		return nil, errors.New("wait for browser: no response")
	}
}

// do sends a command and decodes its response into value, when value is not nil.
func (d *driver) do(c command, value any) error {
	done := make(chan response, 1)
	d.mu.Lock()
	if d.ended != nil {
		d.mu.Unlock()
		return d.ended
	}
	d.next++
	c.ID = d.next
	d.waiting[c.ID] = done
	line, err := json.Marshal(c)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("send %s to browser: %w", c.Do, err)
	}
	raw, err := d.wait(c.ID, done)
	if err != nil {
		return fmt.Errorf("%s in browser: %w", c.Do, err)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("read response of %s: %w", c.Do, err)
	}
	return nil
}
