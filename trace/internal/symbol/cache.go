package symbol

import (
	"bytes"
	"container/list"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/detent-go/detent/trace/internal/proc"
)

// A Cache keeps the objects that were read last. It is not safe for concurrent
// use.
type Cache struct {
	root    fs.FS
	objects map[string]*list.Element
	order   list.List // of *entry, the least recently used last
}

// maxObjects bounds the cache: a big Go program's tables are some 40 MB.
const maxObjects = 8

type entry struct {
	key    string
	object *Object // nil: it cannot be read
}

// NewCache returns an empty cache of the files below root, "/" of the machine.
func NewCache(root fs.FS) *Cache {
	return &Cache{root: root, objects: make(map[string]*list.Element)}
}

// Lookup names what an address of a process is in, and the file that it is from:
// "" if nothing is mapped there.
func (c *Cache) Lookup(p *proc.Process, addr uint64) (s Symbol, file string) {
	m := p.At(addr)
	if m == nil {
		return s, ""
	}
	o := c.Object(p, m)
	if o == nil {
		return s, m.Path
	}
	at, ok := o.Address(addr - m.Start + m.Offset)
	if !ok {
		return s, m.Path
	}
	return o.Lookup(at), m.Path
}

// Object returns what is mapped there, or nil if that is no ELF file that can be
// read.
func (c *Cache) Object(p *proc.Process, m *proc.Mapping) *Object {
	key, open := c.source(p, m)
	if key == "" {
		return nil
	}
	if e, ok := c.objects[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*entry).object
	}
	o, err := open()
	if err != nil {
		o = nil
	}
	c.objects[key] = c.order.PushFront(&entry{key, o})
	if c.order.Len() > maxObjects {
		oldest := c.order.Back()
		delete(c.objects, oldest.Value.(*entry).key)
		c.order.Remove(oldest)
	}
	return o
}

// source says how the object is read, and names it: by what tells apart two files
// of the same path, so that a program that has been built anew is read anew.
func (c *Cache) source(p *proc.Process, m *proc.Mapping) (key string, open func() (*Object, error)) {
	if m.Path == "[vdso]" {
		// The kernel has one for all processes of a kind; this process's own can
		// be read without privileges, but is another's mapping.
		return m.Path, c.readVDSO
	}
	if !strings.HasPrefix(m.Path, "/") {
		return "", nil
	}
	for _, name := range []string{
		fmt.Sprintf("proc/%d/root%s", p.PID, m.Path), // also in a container
		strings.TrimPrefix(path.Clean(m.Path), "/"),  // also when the process has ended
	} {
		info, err := fs.Stat(c.root, name)
		if err != nil {
			continue
		}
		key = fmt.Sprintf("%s %d %d", m.Path, info.Size(), info.ModTime().UnixNano())
		return key, func() (*Object, error) { return c.readFile(name) }
	}
	if m.Path == p.Exe { // deleted, and still running
		return fmt.Sprintf("%d %s", p.PID, p.Exe), func() (*Object, error) {
			return c.readFile(fmt.Sprintf("proc/%d/exe", p.PID))
		}
	}
	return "", nil
}

func (c *Cache) readFile(name string) (*Object, error) {
	f, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		b, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	return Read(r)
}

func (c *Cache) readVDSO() (*Object, error) {
	b, err := fs.ReadFile(c.root, "proc/self/maps")
	if err != nil {
		return nil, err
	}
	self := &proc.Process{Maps: proc.ParseMaps(b)}
	m := self.Named("[vdso]")
	if m == nil {
		return nil, fs.ErrNotExist
	}
	f, err := c.root.Open("proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, fs.ErrInvalid
	}
	image := make([]byte, m.End-m.Start)
	if _, err := r.ReadAt(image, int64(m.Start)); err != nil {
		return nil, err
	}
	return Read(bytes.NewReader(image))
}
