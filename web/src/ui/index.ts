/** The parts of which the page's panels and views are made; each file begins with how it is used. */
export { Button } from "./button";
export { Dialog } from "./dialog";
export { Disclosure } from "./disclosure";
export { Field } from "./field";
export { refocus } from "./focus";
export { Icon } from "./icon";
export { lazy } from "./lazy";
export { Menu, type Item } from "./menu";
export { Sample } from "./sample";
export { logScale, type Scale } from "./scale";
export { Select, type Choice } from "./select";
export { Progress, Status, toast, Toasts } from "./status";
export { Switch, Toggle } from "./switch";
export { DataTable, plain, Table, type Cell, type Column } from "./table";
export { Tabs } from "./tabs";
export { Space, Toolbar } from "./toolbar";
